//! Forms that many scripts have.

use super::{NONE, Program};

pub(super) const PROGRAMS: &[Program] = &[
    Program {
        name: "a JAX script with absl's log",
        prints: "I0102 10:02:03.123456 140001 train.py:140] epoch:   1, train_loss: 0.2, train_accuracy: 93.3, test_loss: 0.05\n\
                 I0102 10:02:13.123456 140001 train.py:140] epoch:   2, train_loss: 0.1, train_accuracy: 95.3, test_loss: 0.04\n",
        metrics: &[
            "1: train_loss=0.2 train_accuracy=93.3 test_loss=0.05",
            "2: train_loss=0.1 train_accuracy=95.3 test_loss=0.04",
        ],
        settings: NONE,
    },
    Program {
        name: "a JAX script with clu",
        prints: "I0102 10:02:03.123456 140001 logging_writer.py:48] [100] accuracy=0.9, loss=0.3, steps_per_sec=12.5\n",
        metrics: &["100: accuracy=0.9 loss=0.3 steps_per_sec=12.5"],
        settings: NONE,
    },
    Program {
        name: "scikit-learn's perceptron",
        prints: "Iteration 1, loss = 0.69314\nIteration 2, loss = 0.61\n",
        metrics: &["1: loss=0.69314", "2: loss=0.61"],
        settings: NONE,
    },
    Program {
        name: "scikit-learn's gradient boosting",
        prints: "      Iter       Train Loss   Remaining Time \n         1           1.2345            1.20s\n         2           1.1234            0.80s\n",
        metrics: &["1: train_loss=1.2345", "2: train_loss=1.1234"],
        settings: NONE,
    },
    Program {
        name: "scikit-learn's SGDClassifier",
        prints: "-- Epoch 1\nNorm: 12.30, NNZs: 30, Bias: 0.100000, T: 1000, Avg. loss: 0.512\nTotal training time: 0.00 seconds.\n\
                 -- Epoch 2\nNorm: 13.30, NNZs: 30, Bias: 0.120000, T: 2000, Avg. loss: 0.412\nTotal training time: 0.01 seconds.\n",
        metrics: &[
            "1: norm=12.3 nnzs=30 bias=0.1 t=1000 avg_loss=0.512",
            "2: norm=13.3 nnzs=30 bias=0.12 t=2000 avg_loss=0.412",
        ],
        settings: NONE,
    },
    Program {
        name: "scikit-learn's GridSearchCV",
        prints: "Fitting 5 folds for each of 12 candidates, totalling 60 fits\n\
                 [CV] END ..learning_rate=0.01, max_depth=3;, score=0.71 total time= 0.1s\n\
                 [CV 1/5] END .......C=0.1, loss=hinge, alpha=0.5;, score=0.733 total time=   0.0s\n\
                 [CV 2/5] END C=0.1;, score=(train=0.912, test=0.856) total time=   0.0s\n\
                 [CV 2/5; 1/12] START learning_rate=0.01, max_depth=3\n",
        metrics: &["0: score=0.71", "0: score=0.733", "0: train_score=0.912 test_score=0.856"],
        settings: NONE,
    },
    Program {
        name: "accuracies in percent and as fractions",
        prints: "Accuracy: 77.17%\nCV accuracy 0.772 (+/- 0.01)\nF1: 71.50 %\n",
        metrics: &["0: accuracy=0.7717", "0: accuracy=0.772", "0: f1=0.715"],
        settings: NONE,
    },
    Program {
        name: "a script that prints its arguments",
        prints: "Namespace(lr=0.1, epochs=5, batch_size=64, momentum=0.9, steps=1000)\n\
                 {'lr': 0.1, 'epochs': 5, 'batch_size': 64}\n{\"seed\": 1, \"max_steps\": 1000}\n\
                 lr: 0.1\nepoch 1: loss 0.5\nlr: 0.05\n",
        metrics: &["1: loss=0.5", "1: learning_rate=0.05"],
        settings: &[
            "total_steps=1000", "learning_rate=0.1", "batch_size=64", "momentum=0.9", "epochs=5", "lr=0.1",
            "max_steps=1000", "seed=1",
        ],
    },
    Program {
        name: "a CSV logger",
        prints: "epoch,train_loss,val_loss\n1,0.5,0.6\n2,0.4,0.55\n",
        metrics: &["1: train_loss=0.5 val_loss=0.6", "2: train_loss=0.4 val_loss=0.55"],
        settings: NONE,
    },
    Program {
        name: "decimal commas",
        prints: "Epoch 1: loss 0,4113 acc 91,21% lr 1,0e-3\nEpoch 2: loss: 0,3113, acc: 92,2 %, reward 1,250\n",
        metrics: &["1: loss=0.4113 acc=0.9121 learning_rate=0.001", "2: loss=0.3113 acc=0.922 reward=1.25"],
        settings: NONE,
    },
    Program {
        name: "the best parameters of a search",
        prints: "best params {'clf__C': 1, 'clf__max_iter': 500}\n{'svc__gamma': 0.5}\nBest: 0.91 using {'depth': 3}\nconfig: {'loss_weight': 0.5}\n\
                 step 1 loss 0.5\nBest parameters: alpha=0.25, l1_ratio=0.5\n",
        metrics: &["1: loss=0.5"],
        settings: &[
            "clf__C=1", "clf__max_iter=500", "svc__gamma=0.5", "depth=3", "loss_weight=0.5", "alpha=0.25",
            "l1_ratio=0.5",
        ],
    },
    Program {
        name: "a search of scikit-learn, as scripts print it",
        prints: "LogisticRegression(C=1.0, max_iter=500)\n{'C': 10, 'gamma': 0.25}\nstep 1 loss 0.5\n\
                 best params: {'depth': 3} best score: 0.875\n{'max_iter': 200}\n",
        metrics: &["1: loss=0.5", "1: best_score=0.875"],
        settings: &["C=10", "gamma=0.25", "depth=3", "max_iter=200"],
    },
    Program {
        name: "sentences of a reinforcement learner",
        prints: "[INFO] Hopper. Step: 3000. Time Elapsed: 12.500 s. Mean Reward: 1.250. Training.\n[INFO] Hopper. Step: 6000. Time Elapsed: 25.000 s. Mean Reward: 2.500. Training.\n",
        metrics: &["3000: mean_reward=1.25", "6000: mean_reward=2.5"],
        settings: NONE,
    },
    Program {
        name: "loops that say where a value was measured",
        prints: "Training loss (for one batch) at step 0: 131.5\n\
                 Training loss (for one batch) at step 200: 1.25\n\
                 Loss after epoch 1: 0.75\n\
                 Accuracy at step 300: 0.5\n\
                 Validation loss 400: 0.625\n\
                 Train loss 500 0.5 Grad Norm 2.25 1.23s/it\n",
        metrics: &[
            "0: training_loss=131.5",
            "200: training_loss=1.25",
            "200: loss=0.75",
            "300: accuracy=0.5",
            "400: val_loss=0.625",
            "500: train_loss=0.5 grad_norm=2.25",
        ],
        settings: NONE,
    },
    Program {
        name: "reinforcement learning by episodes",
        prints: "Episode 10\tLast reward: 12.00\tAverage reward: 10.50\n\
                 Episode: 20, Step: 4000, Reward: 22.5\n\
                 {\"episode\": 30, \"reward\": 23.5}\n",
        metrics: &["10: reward=12 average_reward=10.5", "4000: reward=22.5", "30: reward=23.5"],
        settings: NONE,
    },
    Program {
        name: "a training with Flux, in numbers of single precision",
        prints: "Epoch: 1   Train: (loss = 0.75f0, acc = 81.5)   Test: (loss = 0.875f0, acc = 80.25)\n\
                 Epoch: 2   Train: (loss = 7.5f-2, acc = 91.5)   Test: (loss = 0.125f0, acc = 90.25)  lr = 0.01\n",
        metrics: &[
            "1: train_loss=0.75 train_acc=81.5 test_loss=0.875 test_acc=80.25",
            "2: train_loss=0.075 train_acc=91.5 test_loss=0.125 test_acc=90.25 learning_rate=0.01",
        ],
        settings: NONE,
    },
    Program {
        name: "bars with values behind dashes",
        prints: "\rtrain:  50%|█████     | 5/10 [00:01<00:01,  5.00it/s, dice_loss - 0.5, iou_score - 0.25]\n",
        metrics: &["5: dice_loss=0.5 iou_score=0.25"],
        settings: NONE,
    },
    Program {
        name: "measures that are explained in parentheses",
        prints: "step 5: loss (train): 0.5, loss (valid): 0.25, acc (top1): 0.75, acc (top5) 0.875\n",
        metrics: &["5: train_loss=0.5 val_loss=0.25 top1_acc=0.75 top5_acc=0.875"],
        settings: NONE,
    },
    Program {
        name: "a table with one blank between its columns",
        prints: "# epoch train_loss val_loss mae\n1 0.5 0.625 0.75\n2 0.25 0.375 0.5\nthe epoch loss falls\n3 0.125 0.5\n",
        metrics: &["1: train_loss=0.5 val_loss=0.625 mae=0.75", "2: train_loss=0.25 val_loss=0.375 mae=0.5"],
        settings: NONE,
    },
    Program {
        name: "a table whose columns are parts of the data",
        prints: "Epoch   Train     Valid\n1    0.5    0.625\n",
        metrics: &["1: train=0.5 valid=0.625"],
        settings: NONE,
    },
    Program {
        name: "a course's loop",
        prints: "Cost after iteration 0: 0.75\nCost after iteration 100: 0.5\nit 200 | loss 0.25\nItr 300 | loss 0.125\n",
        metrics: &["0: cost=0.75", "100: cost=0.5", "200: loss=0.25", "300: loss=0.125"],
        settings: NONE,
    },
    Program {
        name: "scripts that name the part of the data in the line",
        prints: "phase: train, epoch: 1, loss: 0.5\nphase: val, epoch: 1, loss: 0.25\nepoch 2 split=test loss=0.125\n\
                 Epoch 3: (train) loss 0.5 acc 0.75 (val) loss 0.25 acc 0.875\n\
                 Epoch 4: train - loss 0.5, acc 0.75 - val - loss 0.25, acc 0.875\n",
        metrics: &[
            "1: loss=0.5",
            "1: val_loss=0.25",
            "2: test_loss=0.125",
            "3: train_loss=0.5 train_acc=0.75 val_loss=0.25 val_acc=0.875",
            "4: train_loss=0.5 train_acc=0.75 val_loss=0.25 val_acc=0.875",
        ],
        settings: NONE,
    },
    Program {
        name: "a list in Markdown",
        prints: "### Epoch 1\n- train loss: 0.5\n- gap: 0.125\n### Epoch 2\n- train loss: 0.25\n- gap: 0.0625\n",
        metrics: &["1: train_loss=0.5", "1: gap=0.125", "2: train_loss=0.25", "2: gap=0.0625"],
        settings: NONE,
    },
    Program {
        name: "tables of Rich",
        prints: "┏━━━━━━━┳━━━━━━┳━━━━━━┓\n┃ Epoch ┃ Loss ┃ Acc  ┃\n┡━━━━━━━╇━━━━━━╇━━━━━━┩\n│ 1     │ 0.5  │ 0.75 │\n│ 2     │ 0.25 │ 0.80 │\n└───────┴──────┴──────┘\n",
        metrics: &["1: loss=0.5 acc=0.75", "2: loss=0.25 acc=0.8"],
        settings: NONE,
    },
    Program {
        name: "a table with commas and blanks, and minibatches",
        prints: "epoch, loss, acc\n1, 0.5, 0.75\nEpoch 1, minibatch 10/50: loss=0.5\nEpoch 2, minibatch 10/50: loss=0.25\n",
        metrics: &["1: loss=0.5 acc=0.75", "10: loss=0.5", "60: loss=0.25"],
        settings: NONE,
    },
    Program {
        name: "results that are no metrics",
        prints: "[12345] queue length: 3.5, workers: 8\ntests/test_loss.py ............ [100%]\nJobID: 123456, step 0: CPU 12\nIn 2023, 4.5 million people, 2.5 accuracy points\n",
        metrics: NONE,
        settings: NONE,
    },
    Program {
        name: "a dict behind other values",
        prints: "step: 10, loss: 0.5, more: {'mae': 0.25}\nstep: 20, loss: 0.25, more: {'loss': 0.5, 'mae': 0.125}\n",
        metrics: &["10: loss=0.5 mae=0.25", "20: loss=0.5 mae=0.125"],
        settings: NONE,
    },
    Program {
        name: "lines that begin with the step, frames, and parts of the data as names",
        prints: "100 loss 0.5 acc 0.75\n200 loss 0.25 acc 0.875\nframe 300: mean reward 12.5\nepoch 1 | train 0.5 | val 0.625\n",
        metrics: &[
            "100: loss=0.5 acc=0.75",
            "200: loss=0.25 acc=0.875",
            "300: mean_reward=12.5",
            "300: train=0.5 val=0.625",
        ],
        settings: NONE,
    },
    Program {
        name: "an evaluation behind an arrow",
        prints: "====> Epoch: 1 Average loss: 164.5000\n\
                 ====> Test set loss: 127.5000\n",
        metrics: &["1: average_loss=164.5", "1: test_loss=127.5"],
        settings: NONE,
    },
    Program {
        name: "an evaluation whose last line has its means in brackets",
        prints: "Train: 0 [ 195/196 (100%)]  Loss: 6.5 (6.75)  LR: 1.000e-04\n\
                 Test: [   0/39]  Loss:  5.5000 (5.5000)  Acc@1:  4.5000 ( 4.5000)\n\
                 Test: [  20/39]  Loss:  5.7500 (5.6250)  Acc@1:  3.5000 ( 4.0000)\n\
                 Test: [  39/39]  Loss:  6.2500 (5.8750)  Acc@1:  2.5000 ( 3.7500)\n\
                 Train: 1 [ 195/196 (100%)]  Loss: 5.5 (5.75)  LR: 1.000e-04\n\
                 Test: [  21/39]  Loss:  4.7500 (4.6250)  Acc@1:  5.5000 ( 6.0000)\n\
                 Test: [  39/39]  Loss:  5.2500 (4.8750)  Acc@1:  4.5000 ( 5.7500)\n",
        metrics: &[
            "195: loss=6.5 learning_rate=0.0001",
            "195: test_loss=5.5 test_acc@1=4.5",
            "195: test_loss=5.75 test_acc@1=3.5",
            "195: test_loss=5.875 test_acc@1=3.75",
            "391: loss=5.5 learning_rate=0.0001",
            "391: test_loss=4.75 test_acc@1=5.5",
            "391: test_loss=4.875 test_acc@1=5.75",
        ],
        settings: NONE,
    },
    Program {
        name: "a bar that draws the step of the training again and again, and of a large one only some digits",
        prints: "\r 10%|#         | 100/1000 [00:10<01:30, 10.0it/s, global_step=40, loss=1.5]\
                 \r 15%|#5        | 150/1000 [00:15<01:25, 10.0it/s, global_step=40, loss=1.5]\
                 \r 20%|##        | 200/1000 [00:20<01:20, 10.0it/s, global_step=1e+4, loss=0.5]\n",
        metrics: &["40: loss=1.5", "140: loss=0.5"],
        settings: NONE,
    },
    Program {
        name: "a measure that is taken in several ways",
        prints: "epoch 3 loss 0.5\nResults:\n- F-score (micro) 0.875\n- F-score (macro) 0.75\n- Accuracy 0.8125\n\
                 Precision (Macro): 0.625\ntest F1 (weighted):   0.5625\nprecision (BF16): 5.5\n",
        metrics: &[
            "3: loss=0.5",
            "3: micro_f-score=0.875",
            "3: macro_f-score=0.75",
            "3: accuracy=0.8125",
            "3: macro_precision=0.625",
            "3: test_weighted_f1=0.5625",
        ],
        settings: NONE,
    },
    Program {
        name: "a neural operator, whose names begin with digits",
        prints: "[0] time=2.50, avg_loss=0.7500, train_err=22.2500\nEval: 16_h1=0.4375, 16_l2=0.3125\n",
        metrics: &["0: time=2.5 avg_loss=0.75 train_err=22.25", "0: eval_16_h1=0.4375 eval_16_l2=0.3125"],
        settings: NONE,
    },
    Program {
        name: "episodes of an evaluation behind the training",
        prints: "global_step=500, episodic_return=[26.5]\neval_episode=0, episodic_return=[141.5]\neval_episode=1, episodic_return=[187.5]\n",
        metrics: &[
            "500: episodic_return=26.5",
            "0: eval_episodic_return=141.5",
            "1: eval_episodic_return=187.5",
        ],
        settings: NONE,
    },
    Program {
        name: "a heading of the validation over lines that are not indented",
        prints: "[Epoch: 0, numImages:   640]\nLoss: 14.5\n\nValidation:\n[Epoch: 0, numImages:   320]\nAcc:0.75, fwIoU: 0.625\nLoss: 7.25\n\nLoss: 13.5\n",
        metrics: &["0: loss=14.5", "0: val_acc=0.75 val_fwiou=0.625", "0: val_loss=7.25", "0: loss=13.5"],
        settings: NONE,
    },
    Program {
        name: "abbreviations, names between slashes, decibels and counts of several kinds",
        prints: "Epoch: 01 | Time: 0m 12s\n\tTrain Loss: 5.125 | Train PPL: 168.25\n\t Val. Loss: 4.875 |  Val. PPL: 131.5\n\
                 Train result at epoch [1/9]: mIoU/mAcc/allAcc 0.25/0.375/0.625.\n<epoch: 2, Average PSNR : 30.25dB\n\
                 epoch 3 mAP@[.5:.95]: 0.375 Prec@1 71.25\n",
        metrics: &[
            "1: train_loss=5.125 train_ppl=168.25",
            "1: val_loss=4.875 val_ppl=131.5",
            "1: train_miou=0.25 train_macc=0.375 train_allacc=0.625",
            "2: average_psnr=30.25",
            "3: map50-95=0.375 prec@1=71.25",
        ],
        settings: NONE,
    },
    Program {
        name: "beginnings that have the epoch without its name",
        prints: "Train 4, loss: 1.25, train acc: 0.5\nTest 4, loss: 1.125, test acc: 0.625\n\
                 [5: 10/90] train loss: 1.0 accuracy: 0.75\n[5: 10/90] test loss: 0.875 accuracy: 0.875\n\
                 5, train_loss=0.75, test_loss=0.8125, time 1.25s\n",
        metrics: &[
            "4: loss=1.25 train_acc=0.5",
            "4: test_loss=1.125 test_acc=0.625",
            "10: train_loss=1 accuracy=0.75",
            "10: test_loss=0.875 test_accuracy=0.875",
            "5: train_loss=0.75 test_loss=0.8125",
        ],
        settings: NONE,
    },
    Program {
        name: "a bar whose description has pairs",
        prints: "d: 0.5000; g: 0.7500; mean path: 0.1250:   1%|          | 10/800 [00:10<13:10,  1.00s/it]\n",
        metrics: &["10: d=0.5 g=0.75 mean_path=0.125"],
        settings: NONE,
    },
    Program {
        name: "lines that are no results",
        prints: "Eval: temperature=0.7, top_p=0.9\n[3/10] [copy: 0.5]\n           train   val\nimages      5000  1000\n\
                 | Setting | Value |\n| width   | 0.5   |\nmean:  0.5  std:   0.25\nValidation:\n12 files of 0.5 GB\n",
        metrics: NONE,
        settings: NONE,
    },
    Program {
        name: "sentences about a measure",
        prints: "step 10 loss 0.5\nAccuracy of the network on the 10000 test images: 62 %\nAccuracy of plane :  66 %\n\
                 Accuracy for class: frog  is 66.5 %\nThe RMSE of prediction is: 0.4322\n\
                 accuracy of the clock: 12 ms\nprecision of the timer is: 5\n\
                 Accuracy of class 3: 98.1 %\nAccuracy of 7 : 96 %\nMSE for step 100: 0.23\n",
        metrics: &[
            "10: loss=0.5",
            "10: test_accuracy=0.62",
            "10: accuracy_plane=0.66",
            "10: accuracy_frog=0.665",
            "10: rmse=0.4322",
            "10: accuracy_3=0.981",
            "10: accuracy_7=0.96",
            "100: mse=0.23",
        ],
        settings: NONE,
    },
    Program {
        name: "ports, processes, versions, progress",
        prints: "listening on port=8080 pid=123\n(Worker pid=1234) step 5: loss 0.5 pid=1234 progress: 16%\n\
                 File \"train.py\", line 12, in <module>\nsrc/ops.cc:42] kept 3 of score elements\n",
        metrics: &["5: loss=0.5"],
        settings: NONE,
    },
];
