name:a freq:-2 I: 0 1 T: 1;
