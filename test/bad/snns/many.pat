SNNS pattern definition file V3.2
generated at Mon Jan  5 10:00:00 1998

No. of patterns : 999999999999999
No. of input units : 2
0 1
