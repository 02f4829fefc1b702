/* SPDX-License-Identifier: MIT */
/* JSON strings. In: text. Out: the same quoted and escaped; bytes that are not UTF-8 become U+FFFD. */
#include "base.h"

/* Readers refuse a header that is not UTF-8. */
size_t utf8_length(const unsigned char *s)
{
	size_t n = s[0] < 0x80                   ? 1
	           : s[0] >= 0xC2 && s[0] < 0xE0 ? 2
	           : s[0] >= 0xE0 && s[0] < 0xF0 ? 3
	           : s[0] >= 0xF0 && s[0] < 0xF5 ? 4
	                                         : 0;
	for (size_t i = 1; i < n; i++)
		if ((s[i] & 0xC0) != 0x80)
			return 0;
	bool overlong = (s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xF0 && s[1] < 0x90);
	bool outside = (s[0] == 0xED && s[1] > 0x9F) || (s[0] == 0xF4 && s[1] > 0x8F);
	return n > 2 && (overlong || outside) ? 0 : n;
}

void json_put(Buf *b, const char *text)
{
	buf_puts(b, "\"");
	for (const unsigned char *s = (const unsigned char *)text; *s;) {
		size_t n = utf8_length(s);
		if (n == 0)
			buf_puts(b, "?");
		else if (*s == '"' || *s == '\\')
			buf_printf(b, "\\%c", *s);
		else if (*s < ' ')
			buf_printf(b, "\\u%04x", *s);
		else
			buf_add(b, s, n);
		s += n ? n : 1;
	}
	buf_puts(b, "\"");
}
