"""For devices whose tensors travel between workers as files."""

from __future__ import annotations

from typing import Any

import torch

from egg.evaluation.tensors import Unsupported


class TravelsAsFiles:
    """The part of `Backend` about memory that is the device's own, for a device that has none."""

    def trim(self) -> None:
        """Keeps what it has: the system takes freed memory back by itself."""

    def send(self, tensor: torch.Tensor) -> dict[str, Any] | None:
        """Returns nothing: tensors travel as files."""
        return None

    def receive(self, body: dict[str, Any]) -> torch.Tensor:
        """Raises Unsupported: nothing is sent."""
        raise Unsupported("shared memory of a device; tensors travel as files here")

    def release_sent(self) -> None:
        """Frees nothing."""

    def share(self, on: bool) -> None:
        """Changes nothing."""

    def offer(self) -> dict[str, Any]:
        """Returns nothing."""
        return {}

    def accept(self, offered: object) -> bool:
        """Returns that nothing can be mapped."""
        return False
