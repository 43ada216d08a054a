"""veRL platform plug-in that makes ``cpu`` a device like ``cuda``.

veRL imports this module itself in every process (``VERL_USE_EXTERNAL_MODULES=trainer.verl_cpu.platform``) and picks the
class by ``VERL_PLATFORM=cpu``; registering at import is what veRL asks of a platform plug-in. Source of the interface:
veRL 0.9.1, ``verl/plugin/platform``.
"""

import functools
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psutil
import torch
import torch.distributed
from verl.plugin.platform import PlatformBase, PlatformRegistry


class _CpuDevice(types.ModuleType):
    """``torch.cpu`` with the ``torch.cuda`` functions that veRL calls without asking which device it has."""

    def __init__(self) -> None:
        super().__init__("trainer.verl_cpu.device")

    def __eq__(self, other: object) -> bool:
        # veRL asks ``get_torch_device() == torch.cpu`` before it reads GPU memory and FLOPS tables.
        return other is torch.cpu or other is self

    def __hash__(self) -> int:
        return hash(self.__name__)

    def __getattr__(self, name: str) -> Any:
        return getattr(torch.cpu, name)

    def empty_cache(self) -> None:
        """Nothing is cached."""

    def memory_allocated(self, *_: Any, **__: Any) -> int:
        """There is no device memory."""
        return 0

    memory_reserved = max_memory_allocated = max_memory_reserved = memory_allocated

    def reset_peak_memory_stats(self, *_: Any, **__: Any) -> None:
        """There is no device memory."""

    reset_accumulated_memory_stats = reset_peak_memory_stats

    def mem_get_info(self, *_: Any, **__: Any) -> tuple[int, int]:
        """Free and total bytes of the host."""
        memory = psutil.virtual_memory()
        return memory.available, memory.total

    def get_device_name(self, *_: Any, **__: Any) -> str:
        """A name for log lines."""
        return "CPU"

    def get_rng_state(self, *_: Any, **__: Any) -> torch.Tensor:
        """State of torch's own generator."""
        return torch.get_rng_state()

    def set_rng_state(self, state: torch.Tensor, *_: Any, **__: Any) -> None:
        """Set torch's own generator."""
        torch.set_rng_state(state)


_DEVICE = _CpuDevice()


@PlatformRegistry.register(platform="cpu")
class CpuPlatform(PlatformBase):
    """The host's processor, gloo between ranks."""

    @property
    def device_name(self) -> str:
        return "cpu"

    @property
    def vendor_name(self) -> str:
        return "cpu"

    @property
    def device_module(self) -> Any:
        return _DEVICE

    def is_available(self) -> bool:
        return True

    def is_platform_available(self, use_smi_check: bool = False) -> bool:
        # Never found by itself: only VERL_PLATFORM=cpu chooses it.
        return True

    def current_device(self) -> Any:
        # veRL does ``tensor.to(get_device_id())``; a number would name an accelerator.
        return torch.device("cpu")

    def device_count(self) -> int:
        return 1

    def set_device(self, device_index: int) -> None:
        return None

    def synchronize(self, device_index: int | None = None) -> None:
        return None

    def manual_seed(self, seed: int) -> None:
        torch.manual_seed(seed)

    def manual_seed_all(self, seed: int) -> None:
        torch.manual_seed(seed)

    def set_allocator_settings(self, settings: str) -> None:
        return None

    def empty_cache(self) -> None:
        return None

    def get_device_capability(self, device_index: int = 0) -> tuple[int | None, int | None]:
        return None, None

    def communication_backend_name(self) -> str:
        return "gloo"

    def visible_devices_envvar(self) -> str:
        return "CUDA_VISIBLE_DEVICES"

    # veRL counts only GPU and NPU resources of the Ray nodes, so each rank takes one logical GPU of those given to
    # ray.init.
    def ray_resource_name(self) -> str:
        return "GPU"

    def ray_resource_options(self, num_gpus: float) -> dict[str, Any]:
        return {"num_gpus": num_gpus}

    def ray_noset_envvars(self) -> list[str]:
        return ["RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES"]

    def is_ipc_supported(self) -> bool:
        return False

    @contextmanager
    def nvtx_range(self, msg: str) -> Iterator[None]:
        yield

    def profiler_start(self) -> None:
        return None

    def profiler_stop(self) -> None:
        return None

    def cudart(self) -> Any:
        return None


def _accept_repeated_cpu_backend() -> None:
    """Let ``init_process_group`` take veRL's backend string for the CPU.

    verl.utils.distributed builds ``f"cpu:gloo,{device}:{backend}"``, here ``cpu:gloo,cpu:gloo``, which torch
    refuses as a duplicate. The platform interface has no say in that string, so exactly that one value is rewritten.
    """
    original = torch.distributed.init_process_group
    if getattr(original, "_openforge", False):
        return

    @functools.wraps(original)
    def init_process_group(backend: str | None = None, *args: Any, **kwargs: Any) -> Any:
        return original("cpu:gloo" if backend == "cpu:gloo,cpu:gloo" else backend, *args, **kwargs)

    init_process_group._openforge = True  # type: ignore[attr-defined]
    torch.distributed.init_process_group = init_process_group


_accept_repeated_cpu_backend()
