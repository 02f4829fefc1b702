SNNS pattern definition file V4.2
generated at Mon Jan  5 10:00:00 1998

No. of patterns : 2
No. of input units : 2
No. of output units : 1
Remap function : Inverse
0 1 1 0 1 1
