#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Builds the wheel: the package and the shared library in one file, without any other tool.

    python3 python/backend.py [--library FILE] [FOLDER]     writes FOLDER/microprop-VERSION-py3-none-PLATFORM.whl

It is also the build backend (PEP 517) of pyproject.toml. Libraries that manylinux does not promise (jansson, xxhash) go
into the wheel, too. The platform is the oldest manylinux whose glibc has all versions of symbols that these files use.
"""
import argparse
import base64
import hashlib
import os
import re
import struct
import subprocess
import sys
import tempfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
NAME = "libmicroprop-study.so"
MACHINES = {62: "x86_64", 183: "aarch64", 243: "riscv64"}
ALLOWED = re.compile(r"lib(c|m)\.so\.6$|lib(dl|rt|pthread)\.so\.\d$|libz\.so\.1$|libgcc_s\.so\.1$|ld-linux-")
COPYRIGHT = {"libjansson.so.4": "libjansson4", "libxxhash.so.0": "libxxhash0"}  # packages that have their terms
DATE = (2026, 1, 1, 0, 0, 0)  # of every file: the same bytes each time


# ---- the library: ELF, 64 bit, little endian ----


class Elf:
    """What a shared library needs: machine, libraries, versions of their symbols."""

    def __init__(self, path):
        with open(path, "rb") as f:
            self.bytes = f.read()
        if self.bytes[:6] != b"\x7fELF\x02\x01":
            sys.exit(f"{path} is no ELF file of 64 bits")
        self.machine = self.number("H", 18)
        table, size, count = self.number("Q", 0x28), self.number("H", 0x3A), self.number("H", 0x3C)
        self.sections = {}
        for i in range(count):  # sh_type: offset, size, link, info
            at = table + i * size
            kind = self.number("I", at + 4)
            offset, length = struct.unpack_from("<QQ", self.bytes, at + 0x18)
            link, info = struct.unpack_from("<II", self.bytes, at + 0x28)
            self.sections.setdefault(kind, (offset, length, link, info))
            if kind in (6, 0x6FFFFFFE):
                strings = table + link * size
                setattr(self, f"strings_{kind}", self.number("Q", strings + 0x18))

    def number(self, kind, at):
        return struct.unpack_from("<" + kind, self.bytes, at)[0]

    def text(self, at):
        return self.bytes[at:self.bytes.index(b"\0", at)].decode()

    def needed(self):
        """DT_NEEDED of SHT_DYNAMIC."""
        offset, length, _, _ = self.sections[6]
        entries = [struct.unpack_from("<qQ", self.bytes, offset + i) for i in range(0, length, 16)]
        return [self.text(self.strings_6 + value) for tag, value in entries if tag == 1]

    def versions(self):
        """Names of versions in SHT_GNU_verneed, such as GLIBC_2.34."""
        found = set()
        at, _, _, count = self.sections.get(0x6FFFFFFE, (0, 0, 0, 0))
        for _ in range(count):
            _, entries, _, first, step = struct.unpack_from("<HHIII", self.bytes, at)
            one = at + first
            for _ in range(entries):
                _, _, _, name, further = struct.unpack_from("<IHHII", self.bytes, one)
                found.add(self.text(getattr(self, f"strings_{0x6FFFFFFE}") + name))
                one += further
            at += step
        return found


def further(path):
    """Files of the libraries that it needs and that manylinux does not promise."""
    found = {}
    listed = subprocess.run(["ldd", path], stdout=subprocess.PIPE, check=True).stdout.decode()
    places = dict(re.findall(r"(\S+) => (/\S+)", listed))
    for name in Elf(path).needed():
        if ALLOWED.match(name):
            continue
        if name not in places:
            sys.exit(f"{path} needs {name}, which is not here")
        found[name] = places[name]
    return found


def platform(paths):
    """The wheel's platform tag."""
    files = [Elf(p) for p in paths]
    versions = set().union(*(f.versions() for f in files))
    glibc = [tuple(map(int, v[6:].split("."))) for v in versions if re.match(r"GLIBC_\d+\.\d+", v)]
    oldest = max(max(glibc)[:2], (2, 17) if files[0].machine == 183 else (2, 5))
    return f"manylinux_{oldest[0]}_{oldest[1]}_{MACHINES[files[0].machine]}"


def find_library():
    """That of the build folder; else it is built."""
    own = os.environ.get("MICROPROP_LIBRARY")
    built = os.path.join(HERE, "..", "build", "wheel", NAME)
    if own or os.path.exists(built):
        return own or built
    folder = os.path.join(tempfile.mkdtemp(), "build")
    for command in (["cmake", "-S", os.path.join(HERE, ".."), "-B", folder, "-DCMAKE_BUILD_TYPE=Release"],
                    ["cmake", "--build", folder, "--target", "microprop_wheel", "-j", str(os.cpu_count() or 1)]):
        subprocess.run(command, check=True, stdout=sys.stderr)
    return os.path.join(folder, "wheel", NAME)


# ---- the wheel ----


def project():
    """pyproject.toml: the few fields that the metadata has; there is no TOML reader in Python before 3.11."""
    with open(os.path.join(HERE, "pyproject.toml"), encoding="utf-8") as f:
        text = f.read()

    def one(key):
        return re.search(rf'^{key} = "(.*)"$', text, re.M).group(1)

    def several(key):
        return re.findall(r'"(.*?)"', re.search(rf"^{key} = \[(.*?)\]", text, re.M | re.S).group(1))

    return one, several


def metadata():
    one, several = project()
    lines = ["Metadata-Version: 2.1", "Name: microprop", f"Version: {one('version')}", f"Summary: {one('description')}",
             "License: MIT", f"Requires-Python: {one('requires-python')}"]
    lines += [f"Classifier: {c}" for c in several("classifiers")]
    lines += [f"Requires-Dist: {d}" for d in several("dependencies")]
    lines += ["Provides-Extra: sklearn"] + [f"Requires-Dist: {d} ; extra == 'sklearn'" for d in several("sklearn")]
    with open(os.path.join(HERE, "README.md"), encoding="utf-8") as f:
        return "\n".join(lines) + "\nDescription-Content-Type: text/markdown\n\n" + f.read()


def write_wheel(folder, library):
    """Returns the name of the file."""
    others = further(library)
    version, tag = project()[0]("version"), f"py3-none-{platform([library, *others.values()])}"
    info = f"microprop-{version}.dist-info"
    package = os.path.join(HERE, "microprop")
    files = []
    for name in sorted(os.listdir(package)):
        if name.endswith((".py", ".typed")):
            with open(os.path.join(package, name), "rb") as f:
                files.append((f"microprop/{name}", f.read()))
    for name, path in [(NAME, library), *others.items()]:
        with open(path, "rb") as f:
            files.append((f"microprop/{name}", f.read()))
        licence = f"/usr/share/doc/{COPYRIGHT.get(name)}/copyright"
        if os.path.exists(licence):
            with open(licence, "rb") as f:
                files.append((f"{info}/licenses/{name}", f.read()))
    with open(os.path.join(HERE, "..", "LICENSE"), "rb") as f:
        files.append((f"{info}/LICENSE", f.read()))
    files.append((f"{info}/METADATA", metadata().encode()))
    wheel = f"Wheel-Version: 1.0\nGenerator: microprop {version}\nRoot-Is-Purelib: false\nTag: {tag}\n"
    files.append((f"{info}/WHEEL", wheel.encode()))
    record = ""
    for name, content in files:
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(content)}\n"
    files.append((f"{info}/RECORD", (record + f"{info}/RECORD,,\n").encode()))
    os.makedirs(folder, exist_ok=True)
    made = f"microprop-{version}-{tag}.whl"
    with zipfile.ZipFile(os.path.join(folder, made), "w", zipfile.ZIP_DEFLATED) as z:
        for name, content in files:
            entry = zipfile.ZipInfo(name, DATE)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o755 if ".so" in name else 0o644) << 16
            z.writestr(entry, content)
    return made


# ---- the hooks of PEP 517 ----


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return write_wheel(wheel_directory, (config_settings or {}).get("library") or find_library())


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    """Also for packagers, who install files and library in places of their own."""
    info = f"microprop-{project()[0]('version')}.dist-info"
    os.makedirs(os.path.join(metadata_directory, info), exist_ok=True)
    with open(os.path.join(metadata_directory, info, "METADATA"), "w", encoding="utf-8") as f:
        f.write(metadata())
    return info


def build_sdist(sdist_directory, config_settings=None):
    sys.exit("the source is that of the whole project: make dist")


def main():
    parser = argparse.ArgumentParser(description="Builds the wheel.")
    parser.add_argument("--library", help="the shared library; default: build/wheel/" + NAME)
    parser.add_argument("folder", nargs="?", default="dist")
    given = parser.parse_args()
    print(os.path.join(given.folder, write_wheel(given.folder, given.library or find_library())))


if __name__ == "__main__":
    main()
