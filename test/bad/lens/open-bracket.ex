I: (in 0 0 1 T: 1;
