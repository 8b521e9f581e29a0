"""`suiro sweep`: the trials of a plan on many machines, or side by side on this one.

The program plans the trials and runs each of them (`suiro run --trial N`); here they are handed out, watched, tried
again and merged (`suiro merge`). An engine says how a trial gets to a machine.
"""
