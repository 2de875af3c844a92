# The script of README.md's session: fits a number, prints its loss, and saves and continues as scripts do, without Trackway in it.
import os
import pickle
import time

state = {"step": 0, "weights": 0.0, "optimizer": 0.0}
if os.path.exists("checkpoint.pkl"):
    with open("checkpoint.pkl", "rb") as file:
        state = pickle.load(file)

while state["step"] < 60:
    time.sleep(0.1)  # a large model
    state["step"] += 1
    error = state["weights"] - 3
    state["optimizer"] = 0.8 * state["optimizer"] + error
    state["weights"] -= 0.008 * state["optimizer"]
    if state["step"] % 5 == 0:
        print(f"step {state['step']} loss {error**2:.3f} grad_norm {abs(2 * error):.3f}", flush=True)
    if state["step"] % 20 == 0:
        with open("checkpoint.pkl", "wb") as file:
            pickle.dump(state, file)
