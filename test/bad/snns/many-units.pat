SNNS pattern definition file V3.2
generated at Mon Jan  5 10:00:00 1998

No. of patterns : 16777216
No. of input units : 16777216
0 1
