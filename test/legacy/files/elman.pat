SNNS pattern definition file V3.2
generated at Mon Jan  5 10:00:00 1998


No. of patterns : 7
No. of input units : 2
No. of output units : 1

# Input pattern 1:
0.63856 0.727969
# Output pattern 1:
0.278421
# Input pattern 2:
-0.169407 -0.282458
# Output pattern 2:
0.884193
# Input pattern 3:
0.915462 -0.698158
# Output pattern 3:
0.176218
# Input pattern 4:
-0.536086 -0.533328
# Output pattern 4:
0.484963
# Input pattern 5:
0.178247 -0.474507
# Output pattern 5:
0.0040936
# Input pattern 6:
-0.162107 -0.261493
# Output pattern 6:
0.566341
# Input pattern 7:
0.906196 0.380987
# Output pattern 7:
0.515491
