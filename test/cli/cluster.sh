# What training on a cluster would take.  With the rates in the file, nothing is measured and every figure is the same everywhere;
# with so much bandwidth, the length of what ranks say when they meet does not show.
cat >known.cluster <<END
base ethernet
bandwidth 100000 MB/s assumed
arithmetic 1000 MCPS assumed
joins 1000 M/s assumed
updates 1000 M/s assumed (made up)
END
letters=$SOURCE_DIR/examples/letters.topo
t model "$letters" --cluster known.cluster --ranks 1..8:x2,24
t model "$letters" --cluster known.cluster --ranks 1..80 --cases 2000000 --batch all
t model "$letters" --cluster known.cluster --ranks 1,4 --batch 1024 --json
t model "$letters" --cluster known.cluster --ranks 2 --batch 100
t model
t model nowhere.topo
t model "$letters" --cluster etherner
t model "$letters" --ranks 1..5000
t model "$letters" --batch some
t model "$letters" --threads 0
t model "$letters" make:xor --cluster known.cluster
printf 'base ethernet\nlatency 5 ms assumed\nspeed 3\n' >bad.cluster
t model "$letters" --cluster bad.cluster
