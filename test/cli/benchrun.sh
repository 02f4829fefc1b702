# How fast this computer trains: what is reported, not how fast.
export MICROPROP_ISA=generic MICROPROP_MEMORY=134217728
numbers='s/"(median|worst|ceiling_pct|[a-z]+_gflops_[a-z0-9]+|copy_gbs)": [-+.0-9e]+/"\1": N/g'
t bench --only 8-3-8 --threads 2 --rounds 1 --json | sed -E "$numbers"
t bench cpu --only nettalk:512 --threads 1 --rounds 2 --json | sed -E "$numbers"
"$MICROPROP" bench --only nettalk:all --threads 1 --rounds 1 | sed -E '1,2d; s/ +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+ %/ N/; s/[0-9]+ MCPS, .* times/N MCPS, N times/'
