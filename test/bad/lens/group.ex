I: (in) 0 1 T: (out) 1;
