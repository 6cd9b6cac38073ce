"""Asks the network for a kernel or for answers. A refused connection shows that there is a network to ask."""

# /// fixture
# task = "double"
# expect = ["RUNTIME_ERROR"]
# variants = ["tcp", "udp", "raw"]
# guarantee = "network"
# ///
import socket

from torch import nn

VARIANT = ""


def ask():
    if VARIANT == "raw":
        socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0).bind((0, 0))
        return
    kind = socket.SOCK_STREAM if VARIANT == "tcp" else socket.SOCK_DGRAM
    with socket.socket(socket.AF_INET, kind) as asked:
        asked.settimeout(0.5)
        try:
            asked.connect(("127.0.0.1", 9))
            asked.send(b"answers, please")
        except ConnectionRefusedError:
            pass


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        ask()

    def forward(self, x):
        return x * 2
