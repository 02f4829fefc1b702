# SPDX-License-Identifier: MIT
"""The shared library: where it is, its structs and calls as the headers in include/ declare them.

A test compiles the headers and compares sizes and offsets with the classes here. Calls release the GIL (ctypes.CDLL).
"""
from __future__ import annotations

import ctypes
import ctypes.util
import os
from ctypes import CFUNCTYPE, POINTER, c_char_p, c_double, c_float, c_int, c_size_t, c_uint32, c_uint64, c_void_p
from pathlib import Path
from typing import Any, List, Tuple

VERSION = "0.2.0"  # of this package; the library's must have the same major and minor number

OK, FAILED, BAD_INPUT, STOPPED, NO_MEMORY = range(5)


class Struct(ctypes.Structure):
    """A struct that begins with its size."""

    def __init__(self, **fields: Any) -> None:
        super().__init__(size=ctypes.sizeof(type(self)), **fields)


def _struct(name: str, *fields: Tuple[str, Any]) -> Any:
    """All structs of the library but mp_allocator begin with `size`."""
    return type(name, (Struct,), {"_fields_": [("size", c_size_t), *fields]})


texts = POINTER(c_char_p)

mp_error = _struct("mp_error", ("severity", c_int), ("file", c_char_p), ("line", c_uint64), ("column", c_uint64),
                   ("offset", c_uint64), ("text", c_char_p), ("excerpt", c_char_p), ("remedy", c_char_p))
mp_data_options = _struct(
    "mp_data_options", ("format", c_char_p), ("inputs", c_char_p), ("targets", c_char_p), ("labels", c_char_p),
    ("sequence", c_char_p), ("weight", c_char_p), ("names", c_char_p), ("partner", c_char_p), ("words", c_char_p),
    ("first", c_uint64), ("seed", c_uint64), ("unlabelled", c_int), ("classes", texts), ("class_count", c_uint32),
    ("shared", c_int), ("fold", c_char_p), ("category", c_char_p), ("scale", c_char_p), ("like", c_void_p),
    ("lenient", c_int), ("groups", c_char_p), ("lossy", c_int))
mp_net_info = _struct(
    "mp_net_info", ("name", c_char_p), ("groups", c_uint32), ("blocks", c_uint32), ("copies", c_uint32),
    ("units", c_uint32), ("inputs", c_uint32), ("outputs", c_uint32), ("levels", c_uint32), ("connections", c_uint64),
    ("input_connections", c_uint64), ("fingerprint", c_char_p), ("data", c_char_p), ("test", c_char_p),
    ("model", c_int), ("open", c_int), ("data_options", POINTER(mp_data_options)),
    ("test_options", POINTER(mp_data_options)), ("weights", c_int))
mp_group_info = _struct("mp_group_info", ("name", c_char_p), ("function", c_char_p), ("role", c_char_p),
                        ("units", c_uint32))
mp_block_info = _struct("mp_block_info", ("from", c_char_p), ("to", c_char_p), ("kind", c_char_p),
                        ("connections", c_uint64), ("frozen", c_int))
mp_cases = _struct(
    "mp_cases", ("name", c_char_p), ("cases", c_uint64), ("inputs", c_uint32), ("targets", c_uint32), ("x", c_void_p),
    ("x_type", c_char_p), ("x_indptr", c_void_p), ("x_indices", c_void_p), ("x_values", c_void_p), ("y", c_void_p),
    ("y_type", c_char_p), ("mask", c_void_p), ("seq", c_void_p), ("sequences", c_uint64), ("weight", c_void_p),
    ("ticks", c_void_p), ("names", texts), ("input_names", texts), ("target_names", texts), ("classes", texts),
    ("class_count", c_uint32))
mp_data_info = _struct(
    "mp_data_info", ("name", c_char_p), ("storage", c_char_p), ("cases", c_uint64), ("sequences", c_uint64),
    ("inputs", c_uint32), ("targets", c_uint32), ("density", c_double), ("min", c_double), ("max", c_double),
    ("target_min", c_double), ("target_max", c_double), ("bytes", c_uint64), ("missing", c_uint64), ("mapped", c_int),
    ("weighted", c_int), ("named", c_int), ("scale", c_char_p), ("codes", c_uint32), ("classes", c_uint32),
    ("class_cases", POINTER(c_uint64)), ("class_names", texts), ("extras", c_uint32), ("extra", texts))
mp_option = _struct(
    "mp_option", ("name", c_char_p), ("type", c_int), ("owner", c_char_p), ("default_value", c_char_p),
    ("min", c_double), ("max", c_double), ("choices", texts), ("argument", c_char_p), ("help", c_char_p),
    ("changes_result", c_int))
mp_report = _struct(
    "mp_report", ("target", c_char_p), ("connections", c_uint64), ("cases", c_uint64), ("epoch", c_uint64),
    ("epochs", c_uint64), ("updates", c_uint64), ("error", c_double), ("total_error", c_double), ("right", c_double),
    ("within", c_double), ("tested", c_int), ("test_error", c_double), ("test_total_error", c_double),
    ("test_right", c_double), ("test_within", c_double), ("rate", c_double), ("seconds", c_double), ("mcps", c_double),
    ("simulated_seconds", c_double), ("simulated_mcps", c_double), ("solved", c_int), ("best", c_int),
    ("fingerprint", c_char_p), ("stopped_by", c_char_p), ("best_epoch", c_uint64))
mp_point = _struct("mp_point", ("epoch", c_uint64), ("error", c_double), ("right", c_double), ("test_error", c_double),
                   ("test_right", c_double))
mp_result = _struct("mp_result", ("cases", c_uint64), ("error", c_double), ("total_error", c_double),
                    ("right", c_double), ("within", c_double), ("seconds", c_double))
mp_seed = _struct("mp_seed", ("seed", c_uint64), ("solved", c_int), ("failed", c_int), ("epochs", c_uint64),
                  ("error", c_double), ("right", c_double), ("within", c_double), ("fingerprint", ctypes.c_char * 33))
mp_restarts = _struct(
    "mp_restarts", ("count", c_uint64), ("done", c_uint64), ("solved", c_uint64), ("failed", c_uint64),
    ("epochs_min", c_uint64), ("epochs_median", c_uint64), ("epochs_max", c_uint64), ("seconds", c_double),
    ("seeds_per_second", c_double), ("mcps", c_double), ("best", c_uint64), ("lanes", c_int),
    ("parallel", c_uint64))
mp_column = _struct(
    "mp_column", ("name", c_char_p), ("role", c_char_p), ("kind", c_char_p), ("units", c_uint32), ("categories", texts),
    ("category_count", c_uint32), ("offset", c_double), ("factor", c_double), ("indicator", c_int), ("plain", c_int))
mp_table_info = _struct("mp_table_info", ("name", c_char_p), ("task", c_char_p), ("decisions", c_char_p),
                        ("rows", c_uint64), ("columns", c_uint32), ("inputs", c_uint32), ("targets", c_uint32),
                        ("folds", c_uint32))
mp_cut = _struct("mp_cut", ("share", c_double), ("folds", c_uint32), ("fold", c_uint32), ("seed", c_uint64),
                 ("stratify", c_int), ("balance", c_int))
mp_topology = _struct("mp_topology", ("hidden", c_char_p), ("function", c_char_p))
mp_metrics = _struct(
    "mp_metrics", ("kind", c_char_p), ("cases", c_uint64), ("accuracy", c_double), ("log_loss", c_double),
    ("auc", c_double), ("bits_right", c_double), ("rmse", c_double), ("mae", c_double), ("r2", c_double),
    ("classes", c_uint32), ("confusion", POINTER(c_uint64)), ("class_names", texts))
mp_class_metrics = _struct("mp_class_metrics", ("cases", c_uint64), ("precision", c_double), ("recall", c_double),
                           ("f1", c_double), ("auc", c_double))

mp_export = _struct("mp_export", ("format", c_char_p), ("calibration", c_void_p), ("plain", c_int))
mp_exported = _struct(
    "mp_exported", ("format", c_char_p), ("second", c_char_p), ("inputs", c_uint64), ("outputs", c_uint64),
    ("calibration_cases", c_uint64), ("largest_difference", c_double), ("rms", c_double), ("changed", c_double),
    ("right", c_double), ("right_int8", c_double), ("bytes", c_uint64), ("bytes_int8", c_uint64))

mp_gf11_options = _struct(
    "mp_gf11_options", ("machine", c_char_p), ("processors", c_uint32), ("level", c_int), ("zero", c_int),
    ("set", texts), ("sets", c_size_t), ("base", texts), ("bases", c_size_t), ("route", texts), ("routes", c_size_t))
mp_gf11_info = _struct(
    "mp_gf11_info", ("name", c_char_p), ("processors", c_uint32), ("lines", c_uint32), ("cycles", c_uint32),
    ("operations", c_uint32), ("issues", c_uint32), ("bound", c_uint32), ("registers", c_uint32), ("spills", c_uint32),
    ("optimal", c_int), ("cycle", c_uint64), ("ended", c_int))
mp_gf11_issue = _struct(
    "mp_gf11_issue", ("cycle", c_uint32), ("done", c_uint32), ("unit", c_uint32), ("recorded", c_uint32),
    ("name", c_char_p), ("text", c_char_p), ("source", c_char_p))

WriteFn = CFUNCTYPE(None, c_void_p, c_void_p, c_size_t)
ReportFn = CFUNCTYPE(c_int, c_void_p, c_void_p, POINTER(mp_report))
TickFn = CFUNCTYPE(c_int, c_void_p, c_void_p)
RestartsFn = CFUNCTYPE(c_int, c_void_p, c_void_p, POINTER(mp_restarts))

_handle, _out = c_void_p, POINTER(c_void_p)
CALLS = {  # name: (result, arguments...)
    "mp_version": (c_char_p,),
    "mp_build_describe": (c_int, WriteFn, c_void_p),
    "mp_option_at": (POINTER(mp_option), c_size_t),
    "mp_net_open": (c_int, _out, c_char_p, c_void_p),
    "mp_net_parse": (c_int, _out, c_char_p, c_char_p, c_void_p),
    "mp_net_resolve": (c_int, _handle, _handle, c_char_p),
    "mp_net_get_info": (POINTER(mp_net_info), _handle),
    "mp_net_get_group": (POINTER(mp_group_info), _handle, c_uint32),
    "mp_net_get_block": (POINTER(mp_block_info), _handle, c_uint32),
    "mp_net_print": (c_int, _handle, c_char_p, c_char_p, WriteFn, c_void_p),
    "mp_net_save": (c_int, _handle, c_char_p),
    "mp_data_open": (c_int, _out, c_char_p, POINTER(mp_data_options), c_void_p),
    "mp_data_open_for": (c_int, _out, c_char_p, _handle, POINTER(mp_data_options), c_void_p),
    "mp_data_view": (c_int, _out, POINTER(mp_cases), c_void_p),
    "mp_data_get_info": (c_int, _handle, POINTER(POINTER(mp_data_info))),
    "mp_data_get_case": (None, _handle, c_uint64, c_void_p, c_void_p),
    "mp_data_get_name": (c_char_p, _handle, c_uint64),
    "mp_data_get_guess": (c_char_p, _handle, c_void_p),
    "mp_data_get_classes": (texts, _handle, POINTER(c_uint32)),
    "mp_data_get_kind": (c_char_p, _handle),
    "mp_data_save": (c_int, _handle, c_char_p),
    "mp_data_split": (c_int, _handle, c_double, c_uint64, _out, _out),
    "mp_data_scale": (c_int, _handle, c_char_p, _handle),
    "mp_run_new": (c_int, _out, _handle, c_void_p),
    "mp_run_set": (c_int, _handle, c_char_p, c_char_p),
    "mp_run_get": (c_char_p, _handle, c_char_p),
    "mp_run_print": (c_int, _handle, _handle, WriteFn, c_void_p),
    "mp_run_load": (c_int, _handle, c_char_p),
    "mp_run_resume": (c_int, _handle, c_char_p),
    "mp_run_save": (c_int, _handle, c_char_p),
    "mp_run_save_best": (c_int, _handle, c_char_p),
    "mp_run_use_best": (c_int, _handle),
    "mp_run_export": (c_int, _handle, c_char_p, c_char_p),
    "mp_run_export_model": (c_int, _handle, c_char_p, POINTER(mp_export), POINTER(mp_exported)),
    "mp_run_train": (c_int, _handle, _handle, _handle, ReportFn, c_void_p),
    "mp_run_change_data": (c_int, _handle),
    "mp_run_get_report": (POINTER(mp_report), _handle),
    "mp_run_get_point": (POINTER(mp_point), _handle, c_size_t),
    "mp_run_get_classes": (texts, _handle, POINTER(c_uint32)),
    "mp_run_get_figures": (c_char_p, _handle),
    "mp_run_on_tick": (None, _handle, c_double, TickFn, c_void_p),
    "mp_run_stop": (None, _handle),
    "mp_run_test": (c_int, _handle, _handle, POINTER(mp_result), c_void_p),
    "mp_run_get_weights": (c_int, _handle, c_void_p, c_size_t),
    "mp_run_set_weights": (c_int, _handle, c_void_p, c_size_t),
    "mp_run_get_fingerprint": (c_char_p, _handle),
    "mp_run_activations": (c_int, _handle, _handle, c_char_p, c_uint32, c_void_p),
    "mp_run_get_ticks": (c_uint32, _handle),
    "mp_run_get_column": (POINTER(mp_column), _handle, c_uint32),
    "mp_run_get_task": (c_char_p, _handle),
    "mp_run_decode": (c_double, _handle, c_uint32, c_double),
    "mp_run_measure": (POINTER(mp_metrics), _handle, _handle),
    "mp_run_get_class_metrics": (POINTER(mp_class_metrics), _handle, c_uint32),
    "mp_run_restarts": (c_int, _handle, _handle, _handle, c_uint64, RestartsFn, ReportFn, c_void_p),
    "mp_run_get_restarts": (POINTER(mp_restarts), _handle),
    "mp_run_get_seed": (POINTER(mp_seed), _handle, c_uint64),
    "mp_predictor_new": (c_int, _out, _handle, c_void_p),
    "mp_predictor_inputs": (POINTER(c_float), _handle),
    "mp_predictor_outputs": (POINTER(c_double), _handle),
    "mp_predictor_run": (c_void_p, _handle),
    "mp_predictor_step": (c_void_p, _handle),
    "mp_predictor_reset": (c_int, _handle),
    "mp_table_open": (c_int, _out, c_char_p, POINTER(mp_data_options), c_char_p, c_void_p),
    "mp_table_get_info": (POINTER(mp_table_info), _handle),
    "mp_table_get_column": (POINTER(mp_column), _handle, c_uint32),
    "mp_table_cut": (c_int, _handle, POINTER(mp_cut), _out, _out),
    "mp_table_encode": (c_int, _handle, c_char_p, POINTER(mp_data_options), _out),
    "mp_table_topology": (c_int, _handle, POINTER(mp_topology), WriteFn, c_void_p),
    # of libmicroprop-study:
    "mp_run_figure": (c_int, _handle, c_char_p, c_uint32, WriteFn, c_void_p),
    "mp_run_study": (c_int, _handle, _handle, c_char_p, c_int, texts, WriteFn, c_void_p),
    "mp_gf11_open": (c_int, _out, c_char_p, c_char_p, POINTER(mp_gf11_options), c_void_p),
    "mp_gf11_get_info": (POINTER(mp_gf11_info), _handle),
    "mp_gf11_get_issue": (POINTER(mp_gf11_issue), _handle, c_uint32),
    "mp_gf11_print": (c_int, _handle, c_char_p, WriteFn, c_void_p),
    "mp_gf11_draw": (c_int, _handle, c_char_p, WriteFn, c_void_p),
    "mp_gf11_run": (c_int, _handle, c_uint64),
    "mp_gf11_restart": (c_int, _handle),
    "mp_gf11_read": (c_int, _handle, c_char_p, POINTER(c_uint32), POINTER(c_uint32)),
    "mp_gf11_write": (c_int, _handle, c_char_p, POINTER(c_uint32), c_uint64),
    "mp_gf11_debug": (c_int, _handle, c_char_p, WriteFn, c_void_p),
}
for _kind in ("net", "data", "run", "predictor", "table", "gf11"):
    CALLS[f"mp_{_kind}_close"] = (None, _handle)
    CALLS[f"mp_{_kind}_get_error"] = (POINTER(mp_error), _handle, c_size_t)
STUDY = ("mp_run_figure", "mp_run_study", *(name for name in CALLS if name.startswith("mp_gf11_")))


def candidates() -> List[str]:
    """Files that may be the library, in the order in which they are tried."""
    own = os.environ.get("MICROPROP_LIBRARY")
    if own:
        return [own]
    here = Path(__file__).resolve().parent
    names = ["libmicroprop-study.so", "libmicroprop.so"]
    found = [str(here / n) for n in names if (here / n).exists()]
    return found + [f"{n}.{VERSION.split('.')[0]}" for n in names]  # by their sonames


def load() -> ctypes.CDLL:
    tried = []
    for path in candidates():
        try:
            lib = ctypes.CDLL(path)
            break
        except OSError as why:
            tried.append(str(why))
    else:
        raise ImportError("cannot load libmicroprop: " + "; ".join(tried) +
                          ". Install it, or set MICROPROP_LIBRARY to the file")
    for name, (result, *arguments) in CALLS.items():
        call = getattr(lib, name, None)
        if call is None:
            if name in STUDY:
                continue
            raise ImportError(f"{path} has no call {name}: it is of another version than this package, {VERSION}")
        call.restype, call.argtypes = result, arguments
    version = lib.mp_version().decode()
    if version.split(".")[:2] != VERSION.split(".")[:2]:
        raise ImportError(f"{path} is version {version}, this package needs {VERSION}")
    return lib


lib = load()


def text_of(b: Any) -> str:
    return b.decode("utf-8", "replace") if b else ""


def text_array(strings: Any) -> Any:
    """A NULL-terminated array of C strings."""
    strings = [str(s).encode() for s in strings]
    return (c_char_p * (len(strings) + 1))(*strings, None)


def written(call: Any, *arguments: Any) -> Tuple[int, str]:
    """Status and text of a call that ends with a function to write to."""
    chunks: List[bytes] = []
    write = WriteFn(lambda user, at, n: chunks.append(ctypes.string_at(at, n)))
    status = call(*arguments, write, None)
    return status, b"".join(chunks).decode("utf-8", "replace")
