/* SPDX-License-Identifier: MIT */
/* Names and other text from files, made fit for a terminal or for JSON. */
#ifndef MICROPROP_TEXT_H
#define MICROPROP_TEXT_H

#include "microprop.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Characters that a terminal or a viewer interprets (C0, DEL, C1, direction overrides, isolates and marks) are
 * escaped. Messages of this library are written so already; names that it returns are as the file has them. */
typedef enum mp_text_form {
	MP_TEXT_SHOWN = 0, /* \n, \x1b, \u202e; bytes that are not UTF-8 as \x80; over 1,024 bytes: cut, with the length */
	MP_TEXT_LINES = 1, /* the same, but tabs and ends of lines pass, and nothing is cut */
	MP_TEXT_JSON = 2   /* inside of a JSON string; bytes that are not UTF-8 become U+FFFD */
} mp_text_form;

MP_API void mp_text_write(const char *text, size_t len, mp_text_form form, mp_write_fn *write, void *user);

#ifdef __cplusplus
}
#endif
#endif
