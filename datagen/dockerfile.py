"""The Dockerfile of a task without packages of its own."""


def dockerfile(base_image: str, *, has_files: bool) -> str:
    """Base image by build argument, the start files as the working directory; neither tests nor solution go in."""
    copy = "COPY files/ ./\n" if has_files else ""
    return f"ARG BASE_IMAGE={base_image}\nFROM ${{BASE_IMAGE}}\nWORKDIR /workspace\n{copy}"
