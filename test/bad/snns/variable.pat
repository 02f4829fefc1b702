SNNS pattern definition file V3.2
generated at Mon Jan  5 10:00:00 1998

No. of patterns : 2
No. of input units : 2
No. of output units : 1
No. of variable input dimensions : 1
Maximum input dimensions : [ 3 ]
[ 1 ] 0 1 1
[ 2 ] 0 1 1 0 1
