"""Errors that cross package boundaries. Each says whose fault it is and whether trying again can help.

OpenForgeError
├── ConfigError            the caller's: a bad value in a config, a flag or a file      exit code 2
│   └── TaskError          the caller's: a task directory that cannot be used
├── ProxyError             the proxy could not do what it promised                      exit code 1
│   ├── ProxyUnreachable   nobody answers at the proxy's address               retryable
│   ├── LogUnavailable     the call log cannot be written (disk full, gone)
│   ├── SessionClosed      the session is sealed; the call came too late
│   └── ContextOverflow    the prompt does not fit the policy's context
├── EngineError            the model behind the proxy failed                   retryable
├── SandboxError           a sandbox could not be started, watched or stopped  retryable
└── TrainerError           the training process failed
"""


class OpenForgeError(Exception):
    """Root of every error that OpenForgeRL raises on purpose."""

    retryable = False
    """Whether the same request may succeed when it is tried again."""
    exit_code = 1
    """Exit code of the command line when this error ends it."""


class ConfigError(OpenForgeError):
    """The caller asked for something that cannot be: says what, which value, what is allowed, what to do."""

    exit_code = 2


class TaskError(ConfigError):
    """A task directory that cannot be read as a task spec."""


class ProxyError(OpenForgeError):
    """The recording proxy could not keep its promise."""


class ProxyUnreachable(ProxyError):
    """Nobody answers at the proxy's address."""

    retryable = True


class LogUnavailable(ProxyError):
    """The call log cannot be written: nothing may be served that is not recorded."""


class SessionClosed(ProxyError):
    """The session is sealed: later calls are refused and not recorded."""


class ContextOverflow(ProxyError):
    """The prompt leaves no room for an answer in the policy's context."""


class EngineError(OpenForgeError):
    """The model behind the proxy failed; never the policy's own doing."""

    retryable = True


class SandboxError(OpenForgeError):
    """A sandbox could not be started, watched or stopped."""

    retryable = True


class TrainerError(OpenForgeError):
    """The training process failed."""
