SNNS pattern definition file V3.2
generated at Mon Jan  5 10:00:00 1998


No. of patterns : 6
No. of input units : 4
No. of output units : 3

# Input pattern 1:
-0.383036 0.632253 -0.638547 0.1632
# Output pattern 1:
0.638913 0.372398 0.547744
# Input pattern 2:
-0.874422 -0.880798 -0.588083 0.3608
# Output pattern 2:
0.427592 0.314147 0.585562
# Input pattern 3:
-0.0936312 -0.400466 0.588759 0.397989
# Output pattern 3:
0.244097 0.574424 0.525197
# Input pattern 4:
0.750275 0.458891 -0.424124 0.96035
# Output pattern 4:
0.118066 0.418123 0.757141
# Input pattern 5:
-0.696031 -0.0220738 -0.921585 0.336432
# Output pattern 5:
0.764571 0.573026 0.875478
# Input pattern 6:
-0.372505 0.390591 0.18874 0.15979
# Output pattern 6:
0.456205 0.839968 0.944681
