SNNS network definition file V1.4
No. of patterns : 2
No. of input units : 2
No. of output units : 1

0 1 1 0 1 1
