# The performance model of the report, and what its commands refuse.  Simulated figures are test_gf11_model's affair.
letters=$SOURCE_DIR/examples/letters.topo
t gf11 model "$letters" --sum ring
t gf11 model "$letters" --cases 12022 --procs 512,566 --whole
t gf11 model "$letters" --printed --procs 8..512:x8
t gf11 model "$letters" --procs 356 --sum pipelined --json
t gf11 model "$letters" --procs 1,,2
t gf11 model "$letters" --sum star
t gf11 model
t gf11 sweep
t gf11 sweep latency=3
t gf11 sweep alu-latency
t gf11 sweep sum=ring,star
t gf11 sweep clock=0..1
t gf11 table1 --machine gf11-356
t gf11 efficiency --routines "$letters"
t gf11 figures --out no-such-folder/figures
# Ways of summing, and what features are worth: refusals, and one small report.
printf 'base gf11\nprocessors 12 assumed\n' >dozen.machine
t gf11 sums --net "$SOURCE_DIR/examples/encoder-8-3-8.topo" --procs 3,8 --compiler 1989 --machine dozen.machine
t gf11 sums --compiler best --out x
t gf11 evaluate "$SOURCE_DIR/examples/xor.topo" --cases 8 --compiler worst
t gf11 evaluate "$SOURCE_DIR/examples/xor.topo" --procs 9999
t gf11 table2 --extended
t gf11 disks "$SOURCE_DIR/examples/encoder-8-3-8.topo" --cases 300 --procs 3,12 --machine dozen.machine
t gf11 disks "$SOURCE_DIR/examples/encoder-8-3-8.topo" --cases 300 --procs 12 --machine dozen.machine --json
t gf11 disks --machine gf11-356
