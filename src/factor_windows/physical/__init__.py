"""How a plan runs: decided once, checked, printed; engines only write it down."""
