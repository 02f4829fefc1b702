# SPDX-License-Identifier: MIT
"""The wheel: its platform follows from its symbols, its record is right, and what runs here is what it holds."""
import base64
import csv
import hashlib
import importlib.metadata
import io
import os
import re
import subprocess
import sys
import tempfile
import unittest
import zipfile

import microprop
from microprop import _library

WHEEL = os.environ["WHEEL"]
SOURCE = os.environ["SOURCE_DIR"]


class Wheel(unittest.TestCase):
    def test_this_is_the_installed_one(self):
        folder = os.path.dirname(microprop.__file__)
        self.assertTrue(folder.startswith(sys.prefix), folder)
        self.assertEqual(os.path.dirname(_library.lib._name), folder)
        self.assertEqual(importlib.metadata.version("microprop"), microprop.__version__)
        self.assertTrue(os.path.exists(os.path.join(folder, "py.typed")))

    def test_the_platform_is_the_oldest_that_symbols_allow(self):
        needed = []
        with zipfile.ZipFile(WHEEL) as z, tempfile.TemporaryDirectory() as folder:
            for name in z.namelist():
                if ".so" not in name or "dist-info" in name:
                    continue
                text = subprocess.run(["readelf", "-W", "--dyn-syms", z.extract(name, folder)], check=True,
                                      stdout=subprocess.PIPE).stdout.decode()
                used = [line for line in text.splitlines() if " UND " in line]
                needed += [tuple(map(int, v)) for line in used for v in re.findall(r"@GLIBC_(\d+)\.(\d+)", line)]
        self.assertEqual(re.search(r"manylinux_(\d+)_(\d+)_", WHEEL).groups(), tuple(map(str, max(needed))))

    def test_the_record_lists_every_file(self):
        with zipfile.ZipFile(WHEEL) as z:
            record = [n for n in z.namelist() if n.endswith("/RECORD")][0]
            rows = list(csv.reader(io.StringIO(z.read(record).decode())))
            self.assertEqual({r[0] for r in rows}, set(z.namelist()))
            for name, digest, size in rows:
                if name == record:
                    continue
                content = z.read(name)
                want = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
                self.assertEqual((digest, int(size)), ("sha256=" + want, len(content)))

    def test_the_same_bytes_every_time(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, os.path.join(SOURCE, "python", "backend.py"), "--library",
                            os.environ["WHEEL_LIBRARY"], folder], check=True, stdout=subprocess.DEVNULL)
            with open(os.path.join(folder, os.path.basename(WHEEL)), "rb") as a, open(WHEEL, "rb") as b:
                self.assertEqual(a.read(), b.read())

    def test_the_library_by_name(self):
        where = {**os.environ, "MICROPROP_LIBRARY": os.path.join(os.path.dirname(microprop.__file__), "none.so")}
        got = subprocess.run([sys.executable, "-c", "import microprop"], stderr=subprocess.PIPE, env=where)
        self.assertIn(b"set MICROPROP_LIBRARY to the file", got.stderr)
        where["MICROPROP_LIBRARY"] = os.environ["WHEEL_LIBRARY"]
        subprocess.run([sys.executable, "-c", "import microprop"], check=True, env=where)

    def test_the_installed_library(self):
        where = {**os.environ, "PYTHONPATH": os.path.join(SOURCE, "python"), "PYTHONDONTWRITEBYTECODE": "1",
                 "LD_LIBRARY_PATH": os.environ["BUILD_DIR"]}
        program = "import microprop._library as m; print(m.__file__, m.lib._name)"
        found = subprocess.run([sys.executable, "-c", program], check=True, env=where, stdout=subprocess.PIPE)
        module, library = found.stdout.decode().split()
        self.assertTrue(module.startswith(SOURCE), module)
        self.assertIn(library, ("libmicroprop-study.so.0", "libmicroprop.so.0"))

    def test_pip_builds_it_from_the_source(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check",
                            "--no-index", "--no-deps", "-w", folder, os.path.join(SOURCE, "python")], check=True,
                           env={**os.environ, "MICROPROP_LIBRARY": os.environ["WHEEL_LIBRARY"]})
            self.assertEqual(os.listdir(folder), [os.path.basename(WHEEL)])


if __name__ == "__main__":
    unittest.main()
