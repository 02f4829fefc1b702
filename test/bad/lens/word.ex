I: 0 1 T: one;
