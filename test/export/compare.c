/* SPDX-License-Identifier: MIT */
/* An exported network against what predict gave: compare NAME.x NAME.y; exit 0 if every output is the same number.
 * Compiled with HEADER, NUMBER (float or double), PREDICT (a call with x and y), INPUTS, OUTPUTS. */
#include <stdio.h>
#include <stdlib.h>
#include HEADER

static int number(FILE *f, double *v)
{
	char text[64];
	int n = 0, c;

	while ((c = getc(f)) != EOF && c != ',' && c != '\n' && n < 63)
		text[n++] = (char)c;
	text[n] = '\0';
	*v = strtod(text, NULL);
	return n > 0;
}

int main(int argc, char **argv)
{
	static NUMBER x[INPUTS], y[OUTPUTS];
	FILE *cases = fopen(argv[argc - 2], "r"), *outputs = fopen(argv[argc - 1], "r");
	double v;
	int n = 0, i;

	START;
	for (; cases && outputs; n++) {
		for (i = 0; i < INPUTS && number(cases, &v); i++)
			x[i] = (NUMBER)v;
		if (i < INPUTS)
			break;
		PREDICT;
		for (i = 0; i < OUTPUTS; i++) {
			if (!number(outputs, &v) || (double)y[i] != v) {
				printf("case %d, output %d: %.17g, predict gives %.17g\n", n, i, (double)y[i], v);
				return 1;
			}
		}
	}
	printf("%d cases\n", n);
	return n < 100;
}
