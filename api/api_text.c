/* SPDX-License-Identifier: MIT */
/* Public calls on text. */
#include "api.h"
#include "microprop/text.h"

void mp_text_write(const char *text, size_t len, mp_text_form form, mp_write_fn *write, void *user)
{
	text_write(text, len, (int)form, write, user);
}
