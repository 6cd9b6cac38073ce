"""Which files a candidate may reach: the system, Python and the tools it builds with; nothing of the user's."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import egg
from egg.evaluation.workers.landlock import CHANGE, DEVICE, EXCHANGE, OWN, READ, Rule

_SYSTEM = ("/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/sys", "/nix/store", "/gnu/store")
_SETTINGS = (
    "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "ld.so.preload", "alternatives", "localtime", "timezone", "passwd",
    "group", "nsswitch.conf", "os-release", "debian_version", "machine-id", "hosts", "locale.alias", "OpenCL", "vulkan",
    "gcrypt", "ssl/openssl.cnf", "nvidia",
)  # fmt: skip
"""Of /etc: what the loader, the C library and drivers read. No keys and no passwords."""
_PARTS = ("bin", "lib", "lib64", "libexec", "include", "nvvm", "targets", "x86_64-conda-linux-gnu",
          "aarch64-conda-linux-gnu", "pyvenv.cfg")  # fmt: skip
"""Of the folder that a toolchain or a Python is installed under; projects that live beside them stay out of reach."""
_TOOLS = ("gcc", "g++", "cc", "c++", "clang", "clang++", "ld", "as", "nvcc", "ptxas", "ninja", "ccache")
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_GPU_DEVICES = ("nvidia*", "dri", "dxg", "kfd")


def system_rules(environment: Mapping[str, str]) -> list[Rule]:
    """Returns what every candidate may read, and the devices that hold no state."""
    folders = [Path(name) for name in _SYSTEM] + [Path("/etc", name) for name in _SETTINGS]
    folders += _python() + _tools(environment)
    rules = [Rule(path, READ) for path in _unique(folders)]
    return rules + [Rule(f"/dev/{name}", DEVICE) for name in _DEVICES]


def gpu_rules() -> list[Rule]:
    """Returns the device files of graphics processors; what the driver tells of itself is in /proc and /sys."""
    found = [path for pattern in _GPU_DEVICES for path in Path("/dev").glob(pattern)]
    return [Rule(str(path), DEVICE) for path in sorted(found)]


def own_rules(folders: Iterable[str], exchanged: Iterable[str]) -> list[Rule]:
    """Returns what one candidate may write: its folders, and plain files where tensors are exchanged."""
    return [Rule(f, OWN) for f in folders] + [Rule(f, EXCHANGE) for f in exchanged]


def process_rules(private: bool) -> list[Rule]:
    """Returns what may be read in /proc: all of a `private` one, else this process and the machine alone."""
    if private:
        return [Rule("/proc", READ), Rule("/proc/self", CHANGE)]
    machine = (
        "cpuinfo", "meminfo", "stat", "filesystems", "mounts", "devices", "driver", "sys", "version", "loadavg",
        "modules",
    )  # fmt: skip
    # By its own link: in a process namespace, the number of this process is another one's in a /proc of the machine.
    return [Rule(f"/proc/{name}", READ) for name in machine] + [Rule("/proc/self", CHANGE)]


def shared_memory_rules() -> list[Rule]:
    """Returns the right to shared memory, which is safe where it is mounted for one candidate alone."""
    return [Rule("/dev/shm", OWN)]


def _python() -> list[Path]:
    packages = [path for path in map(Path, sys.path) if _holds_packages(path)]
    prefixes = {Path(p) for p in (sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix)}
    real = Path(sys.executable).resolve().parent.parent
    parts = [part for prefix in (*sorted(prefixes), real) for part in _installed(prefix)]
    return [*packages, *parts, Path(egg.__file__).parent]


def _holds_packages(path: Path) -> bool:
    """Returns whether packages were installed there, by the usual name or by `pip install --target`."""
    return path.name in ("site-packages", "dist-packages") or (path.is_absolute() and any(path.glob("*.dist-info")))


def _tools(environment: Mapping[str, str]) -> list[Path]:
    named = [environment[name] for name in ("CC", "CXX", "CUDACXX") if environment.get(name)]
    found = [shutil.which(name.split()[0]) for name in (*_TOOLS, *named)]
    prefixes = {Path(path).resolve().parent.parent for path in found if path}
    if home := environment.get("CUDA_HOME") or environment.get("CUDA_PATH"):
        prefixes.add(Path(home))
    libraries = [Path(p) for p in environment.get("LD_LIBRARY_PATH", "").split(os.pathsep) if p]
    return [part for prefix in sorted(prefixes) for part in _installed(prefix)] + libraries


def _installed(prefix: Path) -> list[Path]:
    return [prefix / part for part in _PARTS]


def _unique(folders: Iterable[Path]) -> list[str]:
    """Returns existing folders once, without those that hold a home: a rule for one would open all that is in it."""
    home = Path.home().resolve()
    closed = {Path("/"), home, *home.parents}
    real = {path: path.resolve() for path in folders}
    return sorted({str(path) for path, at in real.items() if at not in closed and path.exists()})
