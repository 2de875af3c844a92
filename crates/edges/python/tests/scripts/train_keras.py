"""Two trainings with Keras that are watched, and a third that is not. `python train_keras.py EPOCHS RATE`."""

import os
import sys

import keras
import numpy

import trackway

run = trackway.attach()
keras.utils.set_random_seed(1)
model = keras.Sequential([keras.layers.Dense(8, "relu"), keras.layers.Dense(1)])
model.compile(keras.optimizers.SGD(float(sys.argv[2])), "mse")
x, y = numpy.random.rand(40, 4).astype("float32"), numpy.random.rand(40, 1).astype("float32")
others = keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: print(sorted(logs)))
watch = trackway.callbacks.KerasCallback(run)
saver = keras.callbacks.ModelCheckpoint(os.path.join(os.path.dirname(os.environ["TRACKWAY_RECORD"]), "model.keras"))
fit = {"batch_size": 5, "shuffle": False, "validation_data": (x, y), "verbose": 0}
for _ in range(2):
    print("first", float(model.evaluate(x[:5], y[:5], verbose=0)))
    history = model.fit(x, y, epochs=int(sys.argv[1]), callbacks=[watch, saver, others], **fit).history
    print("history", sorted(history), history["loss"])
    print("epochs", len(history["loss"]))
model.fit(x, y, epochs=1, callbacks=[others], **fit)
assert not {"train_step", "save", "save_weights"} & set(vars(model))
assert "stateless_apply" not in vars(model.optimizer)
run.finish()
