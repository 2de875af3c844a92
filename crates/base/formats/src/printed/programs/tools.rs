//! Other tools: frameworks, boosting, reinforcement learning, science.

use super::{NONE, Program};

pub(super) const PROGRAMS: &[Program] = &[
    Program {
        name: "Lightning",
        prints: "\rEpoch 0:  50%|█████     | 1/2 [00:00<00:00, 45.2it/s, v_num=3, train_loss=0.5]\
                 \rEpoch 0: 100%|██████████| 2/2 [00:00<00:00, 45.2it/s, v_num=3, train_loss=0.4, val_loss=0.6]\n\
                 \rEpoch 1: 100%|██████████| 2/2 [00:00<00:00, 45.2it/s, v_num=3, train_loss=0.3, val_loss=0.5]\n",
        metrics: &["1: train_loss=0.5", "2: train_loss=0.4 val_loss=0.6", "4: train_loss=0.3 val_loss=0.5"],
        settings: NONE,
    },
    Program {
        name: "Keras",
        prints: "Epoch 1/2\n\r1/2 ━━━━━━━━━━ 0s 34ms/step - accuracy: 0.5 - loss: 1.4\
                 \r2/2 ━━━━━━━━━━ 0s 34ms/step - accuracy: 0.6 - loss: 1.2 - val_loss: 1.1\n\
                 Epoch 2/2\n\r2/2 ━━━━━━━━━━ 0s 34ms/step - accuracy: 0.7 - loss: 1.0 - val_loss: 0.9\n",
        metrics: &[
            "1: accuracy=0.5 loss=1.4",
            "2: accuracy=0.6 loss=1.2 val_loss=1.1",
            "4: accuracy=0.7 loss=1 val_loss=0.9",
        ],
        settings: NONE,
    },
    Program {
        name: "XGBoost",
        prints: "[0]\tvalidation_0-logloss:0.68412\tvalidation_0-auc:0.71\n\
                 [1]\tvalidation_0-logloss:0.62\tvalidation_0-auc:0.74\n",
        metrics: &[
            "1: validation_0-logloss=0.68412 validation_0-auc=0.71",
            "2: validation_0-logloss=0.62 validation_0-auc=0.74",
        ],
        settings: NONE,
    },
    Program {
        name: "LightGBM",
        prints: "[LightGBM] [Info] Number of positive: 212, number of negative: 357\n\
                 [LightGBM] [Info] Total Bins 4542\n\
                 [LightGBM] [Info] [binary:BoostFromScore]: pavg=0.372583 -> initscore=-0.521150\n\
                 [LightGBM] [Info] Start training from score -0.521150\n\
                 Training until validation scores don't improve for 10 rounds\n\
                 [10]\ttraining's binary_logloss: 0.2\tvalid_1's binary_logloss: 0.25\n",
        metrics: &["10: training_binary_logloss=0.2 valid_1_binary_logloss=0.25"],
        settings: NONE,
    },
    Program {
        name: "CatBoost",
        prints: "0:\tlearn: 0.6891\ttest: 0.6903\tbest: 0.6903 (0)\ttotal: 48.1ms\tremaining: 48s\n\
                 100:\tlearn: 0.4\ttest: 0.45\tbest: 0.44 (98)\ttotal: 1.2s\tremaining: 10.7s\n\n\
                 bestTest = 0.4402\nbestIteration = 98\n\nShrink model to first 99 iterations.\n",
        metrics: &[
            "1: learn=0.6891 test=0.6903 best=0.6903",
            "101: learn=0.4 test=0.45 best=0.44",
            "101: best_test=0.4402",
        ],
        settings: NONE,
    },
    Program {
        name: "Stable-Baselines3",
        prints: "Using cpu device\nWrapping the env in a DummyVecEnv.\n\
                 ---------------------------------\n| rollout/           |          |\n|    ep_len_mean     | 22.7     |\n|    ep_rew_mean     | 21.5     |\n\
                 | time/              |          |\n|    fps             | 1264     |\n|    iterations      | 1        |\n|    time_elapsed    | 1        |\n|    total_timesteps | 2048     |\n\
                 | train/             |          |\n|    learning_rate   | 0.0003   |\n|    loss            | 6.88     |\n---------------------------------\n\
                 ---------------------------------\n| rollout/           |          |\n|    ep_rew_mean     | 25       |\n| time/              |          |\n|    total_timesteps | 4096     |\n---------------------------------\n",
        metrics: &[
            "2048: rollout/ep_len_mean=22.7 rollout/ep_rew_mean=21.5 time/fps=1264 time/time_elapsed=1 train/learning_rate=0.0003 train/loss=6.88",
            "4096: rollout/ep_rew_mean=25",
        ],
        settings: NONE,
    },
    Program {
        name: "CleanRL",
        prints: "global_step=1024, episodic_return=[23.]\nglobal_step=2048, episodic_return=41.5\nSPS: 1200\n",
        metrics: &["1024: episodic_return=23", "2048: episodic_return=41.5"],
        settings: NONE,
    },
    Program {
        name: "fastai",
        prints: "epoch     train_loss  valid_loss  accuracy  time    \n0         0.456000    0.312000    0.890000  00:12     \n1         0.350000    0.280000    0.910000  00:12     \n",
        metrics: &[
            "0: train_loss=0.456 val_loss=0.312 accuracy=0.89",
            "1: train_loss=0.35 val_loss=0.28 accuracy=0.91",
        ],
        settings: NONE,
    },
    Program {
        name: "tinygrad",
        prints: "\rloss:   2.31 test_accuracy:  9.80%:  50%|█████     | 35/70 [00:04<00:04,  7.5it/s]\
                 \rloss:   0.43 test_accuracy: 97.20%: 100%|██████████| 70/70 [00:09<00:00,  7.5it/s]\n",
        metrics: &["35: loss=2.31 test_accuracy=0.098", "70: loss=0.43 test_accuracy=0.972"],
        settings: NONE,
    },
    Program {
        name: "loguru",
        prints: "2026-01-02 10:02:03.123 | INFO     | __main__:train:53 - step 10 loss 0.5\n",
        metrics: &["10: loss=0.5"],
        settings: NONE,
    },
    Program {
        name: "TensorFlow's Estimator",
        prints: "INFO:tensorflow:loss = 0.5, step = 100 (1.234 sec)\nINFO:tensorflow:global_step/sec: 81.2\n\
                 INFO:tensorflow:Saving dict for global step 200: accuracy = 0.9, global_step = 200, loss = 0.3\n",
        metrics: &["100: loss=0.5", "200: eval_accuracy=0.9 eval_loss=0.3"],
        settings: NONE,
    },
    Program {
        name: "Paddle",
        prints: "[2026-01-02 10:02:03,123] [    INFO] - global step 100, epoch: 1, batch: 100, loss: 0.53, accu: 0.8, speed: 3.10 step/s\n",
        metrics: &["100: loss=0.53 accu=0.8 speed=3.1"],
        settings: NONE,
    },
    Program {
        name: "Weights & Biases and Optuna",
        prints: "wandb: Run summary:\nwandb:      loss 0.123\nwandb:      _step 99\n\
                 [I 2026-01-02 10:02:03,123] Trial 3 finished with value: 0.876 and parameters: {'lr': 0.01, 'n_layers': 3}. Best is trial 1 with value: 0.89.\n\
                 [I 2026-01-02 10:02:04,123] Trial 4 finished with values: [0.5, 12.25] and parameters: {'lr': 0.02}.\n\
                 [I 2026-01-02 10:02:05,123] Trial 5 pruned. \n",
        metrics: &["3: value=0.876", "4: value_0=0.5 value_1=12.25"],
        settings: NONE,
    },
    Program {
        name: "Lightning's bar of Rich without a terminal",
        prints: "Epoch 0/1  ━━━━━━━━━━ 10/10 0:00:01 • 0:00:00 12.3it/s v_num: 0.000        \n                 train_loss: 1.000  \n\
                 Epoch 1/1  ━━━━━━━━━━ 10/10 0:00:01 • 0:00:00 12.3it/s v_num: 0.000        \n                 train_loss: 0.500  \n",
        metrics: &["10: train_loss=1", "20: train_loss=0.5"],
        settings: NONE,
    },
    Program {
        name: "rl_games",
        prints: "fps step: 67576 fps step and policy inference: 57940 fps total: 42046 epoch: 1/500 frames: 65536\n\
                 fps step: 64312 fps step and policy inference: 58153 fps total: 43728 epoch: 2/500 frames: 131072\n\
                 saving next best rewards:  [103.5]\n",
        metrics: &["1: frames=65536", "2: frames=131072", "2: best_rewards=103.5"],
        settings: NONE,
    },
    Program {
        name: "Vowpal Wabbit",
        prints: "average  since         example        example        current        current  current\n\
                 loss     last          counter         weight          label        predict features\n\
                 0.750000 0.750000            1            1.0         1.0000        -1.2500       77\n\
                 0.625000 0.500000            2            2.0        -1.0000         2.2500       77\n\
                 \n\
                 finished run\n\
                 number of examples = 2\n\
                 average loss = 0.625\n\
                 best constant's loss = 0.875\n",
        metrics: &[
            "1: loss=0.75 last=0.75 weight=1 label=1 predict=-1.25 features=77",
            "2: loss=0.625 last=0.5 weight=2 label=-1 predict=2.25 features=77",
            "2: average_loss=0.625",
            "2: best_constant_loss=0.875",
        ],
        settings: NONE,
    },
    Program {
        name: "Spinning Up",
        prints: "---------------------------------------\n\
                 |             Epoch |               0 |\n\
                 |      AverageEpRet |            21.5 |\n\
                 | TotalEnvInteracts |           4e+03 |\n\
                 |             LossV |             350 |\n\
                 |              Time |            12.5 |\n\
                 ---------------------------------------\n\
                 ---------------------------------------\n\
                 |             Epoch |               1 |\n\
                 |      AverageEpRet |            31.5 |\n\
                 | TotalEnvInteracts |           8e+03 |\n\
                 |             LossV |             250 |\n\
                 ---------------------------------------\n",
        metrics: &["4000: AverageEpRet=21.5 LossV=350 Time=12.5", "8000: AverageEpRet=31.5 LossV=250"],
        settings: NONE,
    },
    Program {
        name: "XGBoost's cross validation",
        prints: "[0]\ttrain-rmse:0.51250+0.01250\ttest-rmse:0.61250+0.02250\n\
                 [1]\ttrain-rmse:0.41250+0.01250\ttest-rmse:0.51250+0.02250\n",
        metrics: &["1: train-rmse=0.5125 test-rmse=0.6125", "2: train-rmse=0.4125 test-rmse=0.5125"],
        settings: NONE,
    },
    Program {
        name: "NequIP",
        prints: "# Epoch batch         loss       loss_f       f_mae      f_rmse\n\
                 \x20     1     1         1.25            1        24.5        32.5\n\
                 \x20     1     2         1.125         0.5        23.5        31.5\n",
        metrics: &[
            "1: loss=1.25 loss_f=1 f_mae=24.5 f_rmse=32.5",
            "2: loss=1.125 loss_f=0.5 f_mae=23.5 f_rmse=31.5",
        ],
        settings: NONE,
    },
    Program {
        name: "FAIR Chem",
        prints: "2026-01-02 10:02:03 (INFO): energy_mae: 1.25e+00, loss: 2.50e+00, lr: 1.00e-04, epoch: 1.00e-02, step: 1.00e+01\n",
        metrics: &["10: energy_mae=1.25 loss=2.5 learning_rate=0.0001"],
        settings: NONE,
    },
    Program {
        name: "NequIP, whose rows of epochs name the part of the data",
        prints: "validation\n# Epoch batch       loss_f         loss        f_mae\n      0     5            2            2           12\n\n\
                 \x20 Initialization     #    Epoch      wal       LR       loss_f         loss\n\
                 ! Initial Validation          0    1.500    0.005        1.5          1.25\n\
                 training\n# Epoch batch       loss_f         loss        f_mae\n      1    50         0.75         0.75         10.5\n\n\
                 \x20 Train      #    Epoch      wal       LR       loss_f         loss\n\
                 ! Train               1   10.5      0.005        0.625        0.5\n\
                 ! Validation          1   10.5      0.005        0.375        0.25\n",
        metrics: &[
            "0: val_batch_loss_f=2 val_batch_loss=2 val_batch_f_mae=12",
            "0: val_wal=1.5 val_learning_rate=0.005 val_loss_f=1.5 val_loss=1.25",
            "50: loss_f=0.75 loss=0.75 f_mae=10.5",
            "50: train_wal=10.5 train_learning_rate=0.005 train_loss_f=0.625 train_loss=0.5",
            "50: val_wal=10.5 val_learning_rate=0.005 val_loss_f=0.375 val_loss=0.25",
        ],
        settings: NONE,
    },
    Program {
        name: "mlr3torch",
        prints: "Epoch 1\n\n[Summary epoch 1]\n------------------\nMeasures (Train):\n * classif.acc = 0.5\n * classif.gap = 0.75\nMeasures (Valid):\n\
                 \x20* classif.acc = 0.25\n * classif.gap = 1.5\nEpoch 2\n\n[Summary epoch 2]\n------------------\nMeasures (Train):\n * classif.acc = 0.625\n",
        metrics: &[
            "1: classif.acc=0.5",
            "1: classif.gap=0.75",
            "1: val_classif.acc=0.25",
            "1: val_classif.gap=1.5",
            "2: classif.acc=0.625",
        ],
        settings: NONE,
    },
    Program {
        name: "XGBoost in R, whose rounds count from 1",
        prints: "[1]\ttrain-rmse:0.750000\ttest-rmse:0.875000 \n[2]\ttrain-rmse:0.500000\ttest-rmse:0.625000 \n",
        metrics: &["1: train-rmse=0.75 test-rmse=0.875", "2: train-rmse=0.5 test-rmse=0.625"],
        settings: NONE,
    },
    Program {
        name: "gbm in R",
        prints: "Iter   TrainDeviance   ValidDeviance   StepSize   Improve\n\
                 \x20    1        1.2500          1.3750     0.1000    0.0250\n     2        1.1250          1.2500     0.1000    0.0125\n",
        metrics: &[
            "1: traindeviance=1.25 validdeviance=1.375 stepsize=0.1 improve=0.025",
            "2: traindeviance=1.125 validdeviance=1.25 stepsize=0.1 improve=0.0125",
        ],
        settings: NONE,
    },
    Program {
        name: "garage, whose tables have no bars",
        prints: "2026-01-02 10:02:03 | [ppo] epoch #0 | Saved\n-------------------------  --------\nAverageReturn                22.5\n\
                 Evaluation/NumTrajs          45\nTotalEnvSteps               500\npolicy/KL                     0.25\n-------------------------  --------\n\
                 -------  ---\nLast score  0.5\nfiles       3\n-------  ---\n\nEpoch 7\n-----------\nloss 0.25\n",
        metrics: &[
            "500: AverageReturn=22.5 Evaluation/NumTrajs=45 policy/KL=0.25",
            "500: Last_score=0.5 files=3",
            "500: loss=0.25",
        ],
        settings: NONE,
    },
    Program {
        name: "MATLAB, whose headings have two lines",
        prints: "|===========================================================|\n\
                 |  Epoch  |  Iteration  |  Time Elapsed  |  Mini-batch  |  Mini-batch  |\n\
                 |         |             |   (hh:mm:ss)   |   Accuracy   |     Loss     |\n\
                 |===========================================================|\n\
                 |       1 |           1 |       00:00:01 |       12.50% |       2.2500 |\n\
                 |       2 |          50 |       00:00:09 |       62.50% |       1.1250 |\n",
        metrics: &[
            "1: mini-batch_accuracy=0.125 mini-batch_loss=2.25",
            "50: mini-batch_accuracy=0.625 mini-batch_loss=1.125",
        ],
        settings: NONE,
    },
    Program {
        name: "NEAT",
        prints: "\n ****** Running generation 3 ****** \n\nPopulation's average fitness: 2.25000 stdev: 0.50000\n",
        metrics: &["3: population_average_fitness=2.25 stdev=0.5"],
        settings: NONE,
    },
    Program {
        name: "Tianshou's bars without a total",
        prints: "\rEpoch #1: 500it [00:05, 90.11it/s, loss=0.500, rew=12.00]\rEpoch #2: 500it [00:05, 90.11it/s, loss=0.250, rew=13.00]\n",
        metrics: &["500: loss=0.5 rew=12", "1000: loss=0.25 rew=13"],
        settings: NONE,
    },
    Program {
        name: "DeePMD-kit's table behind a sign, with one measure only",
        prints: "#  step      rmse_val    rmse_trn\n      0      2.5e+01    1.5e+01\n     50      1.5e+01    1.25e+01\n",
        metrics: &["0: rmse_val=25 rmse_trn=15", "50: rmse_val=15 rmse_trn=12.5"],
        settings: NONE,
    },
    Program {
        name: "Stable-Baselines3's evaluation",
        prints: "Eval num_timesteps=500, episode_reward=95.25 +/- 5.50\nEpisode length: 95.25 +/- 5.50\nNew best mean reward!\n\
                 Eval num_timesteps=1000, episode_reward=120.5 +/- 0.00\n",
        metrics: &["500: eval_episode_reward=95.25", "1000: eval_episode_reward=120.5"],
        settings: NONE,
    },
    Program {
        name: "Lightning's results of a test",
        prints: "step 40: loss 0.5\n┃        Test metric        ┃       DataLoader 0        ┃\n│         test_acc          │           0.75            │\n│         test_loss         │           0.25            │\n└───────────────────────────┘\n│ files │ 12 │\ndone 1\n",
        metrics: &["40: loss=0.5", "40: test_acc=0.75 test_loss=0.25 files=12"],
        settings: NONE,
    },
    Program {
        name: "LeRobot's steps in thousands",
        prints: "INFO 2026-01-02 10:02:03 ts/train.py:158 cfg.steps=4000 (4K)\n\
                 INFO 2026-01-02 10:02:04 ts/train.py:232 step:600 smpl:5K ep:39 epch:0.19 loss:0.500 grdn:4.465 lr:2.0e-05\n\
                 INFO 2026-01-02 10:02:05 ts/train.py:232 step:1K smpl:8K ep:64 epch:0.31 loss:0.250 grdn:3.240 lr:6.0e-05\n\
                 INFO 2026-01-02 10:02:06 ts/train.py:232 step:1K smpl:9K ep:77 epch:0.37 loss:0.125 grdn:3.125 lr:6.0e-05\n\
                 INFO 2026-01-02 10:02:07 ts/train.py:232 step:2.5K smpl:9K ep:80 epch:0.50 loss:0.120 grdn:3.000 lr:6.0e-05\n\
                 INFO 2026-01-02 10:02:08 ts/train.py:274 step:12K smpl:16K ep:128 epch:0.62 \u{2211}rwrd:24.5 success:12.5\n",
        metrics: &[
            "600: epch=0.19 loss=0.5 grdn=4.465 learning_rate=0.00002",
            "1000: epch=0.31 loss=0.25 grdn=3.24 learning_rate=0.00006",
            "1000: epch=0.37 loss=0.125 grdn=3.125 learning_rate=0.00006",
            "2500: epch=0.5 loss=0.12 grdn=3 learning_rate=0.00006",
            "12000: epch=0.62 rwrd=24.5 success=12.5",
        ],
        settings: NONE,
    },
    Program {
        name: "RSL-RL, with names that fill the room of their column",
        prints: "################################\n            \u{1b}[1m Learning iteration 3/300 \u{1b}[0m\n\n\
                 \u{20}         Mean entropy loss: 16.5\n                Mean reward: -0.25\n\
                 Episode_Reward/track_velocity: 0.125\n  Metrics/velocity/error_xy: 0.5\n\
                 Episode_Termination/timed_out: 83.5\n--------------------------------\nother/value: 5.0\n",
        metrics: &[
            "3: mean_entropy_loss=16.5",
            "3: mean_reward=-0.25",
            "3: episode_reward/track_velocity=0.125",
            "3: metrics/velocity/error_xy=0.5",
            "3: episode_termination/timed_out=83.5",
        ],
        settings: NONE,
    },
    Program {
        name: "skorch, in colours and with a sign in some rows only",
        prints: "  epoch    train_loss    valid_acc    cp     dur\n-------  ------------  -----------  ----  ------\n\
                 \u{20}     1        \u{1b}[36m0.7500\u{1b}[0m       \u{1b}[32m0.5000\u{1b}[0m     +  0.2500\n\
                 \u{20}     2        \u{1b}[36m0.5000\u{1b}[0m       0.4375        0.1250\n\
                 \u{20}     3        0.6250        \u{1b}[32m0.7500\u{1b}[0m     +  0.1875\n",
        metrics: &[
            "1: train_loss=0.75 val_acc=0.5 dur=0.25",
            "2: train_loss=0.5 val_acc=0.4375 dur=0.125",
            "3: train_loss=0.625 val_acc=0.75 dur=0.1875",
        ],
        settings: NONE,
    },
    Program {
        name: "RLlib's boxes",
        prints: "Trial PPO_00000 started with configuration:\n\u{256d}\u{2500}\u{2500}\u{256e}\n\u{2502} Trial PPO_00000 config            \u{2502}\n\
                 \u{251c}\u{2500}\u{2500}\u{2524}\n\u{2502} gamma                      0.99    \u{2502}\n\u{2502} reward_weight              0.5     \u{2502}\n\
                 \u{2502} stop/episode_reward        150.0   \u{2502}\n\u{2570}\u{2500}\u{2500}\u{256f}\n\n\
                 Trial PPO_00000 finished iteration 1 at 2026-01-02 10:02:03. Total running time: 14s\n\
                 \u{2502} Trial PPO_00000 result            \u{2502}\n\u{2502} episodes_total             177     \u{2502}\n\
                 \u{2502} status                     RUNNING \u{2502}\n\u{2502} num_env_steps_sampled      4000    \u{2502}\n\
                 \u{2502} sampler/episode_len_mean   22.5    \u{2502}\n\u{2502} episode_reward_mean        21.5    \u{2502}\n\n\
                 Trial PPO_00000 finished iteration 2 at 2026-01-02 10:02:13. Total running time: 19s\n\
                 \u{2502} Trial PPO_00000 result            \u{2502}\n\u{2502} num_env_steps_sampled      8000    \u{2502}\n\
                 \u{2502} sampler/episode_len_mean   44.5    \u{2502}\n\u{2502} episode_reward_mean        41.5    \u{2502}\n",
        metrics: &[
            "4000: episodes_total=177 sampler/episode_len_mean=22.5 episode_reward_mean=21.5",
            "8000: sampler/episode_len_mean=44.5 episode_reward_mean=41.5",
        ],
        settings: NONE,
    },
    Program {
        name: "Tianshou, whose bar names the step of the training and goes beyond its total",
        prints: "\rEpoch #1:  50%|#####     | 500/1000 [00:01<00:01, 500.0it/s, env_step=500, loss=0.750, rew=20.50]\
                 \rEpoch #1: 1001it [00:02, 500.0it/s, env_step=1000, loss=0.500, rew=21.50]\n\
                 Epoch #1: test_reward: 142.500000 \u{b1} 21.250000, best_reward: 142.500000 \u{b1} 21.250000 in #1\n\
                 \rEpoch #2:   0%|          | 0/1000 [00:00<?, ?it/s]\
                 \rEpoch #2: 881it [00:02, 500.0it/s, env_step=1880, loss=0.250, rew=22.50]\n\
                 Epoch #2: test_reward: 150.500000 \u{b1} 3.250000, best_reward: 150.500000 \u{b1} 3.250000 in #2\n",
        metrics: &[
            "500: loss=0.75 rew=20.5",
            "1000: test_reward=142.5 best_reward=142.5",
            "1000: loss=0.5 rew=21.5",
            "1880: loss=0.25 rew=22.5",
            "1880: test_reward=150.5 best_reward=150.5",
        ],
        settings: NONE,
    },
    Program {
        name: "PyMARL, whose rows have pairs only",
        prints: "[INFO 10:02:03] my_main Recent Stats | t_env:       4096 | Episode:       60\n\
                 dead_allies_mean:          2.5000\tepsilon:                   0.7500\n\
                 return_mean:               1.2500\t\n\
                 [INFO 10:02:03] my_main t_env: 4160 / 50000\n",
        metrics: &["4096: dead_allies_mean=2.5 epsilon=0.75", "4096: return_mean=1.25"],
        settings: NONE,
    },
    Program {
        name: "DrQ-v2 and TD-MPC, whose names are short",
        prints: "| train | F: 2000 | S: 1000 | E: 1 | L: 1000 | R: 27.5000 | BS: 1000 | FPS: 95.5000 | T: 0:00:19\n\
                 | eval  | F: 2000 | S: 1000 | E: 1 | L: 1000 | R: 30.2500 | T: 0:00:25\n \
                 train         E: 2     S: 1,500     R: 32.5     T: 0:00:30\n",
        metrics: &["1000: r=27.5 fps=95.5", "1000: eval_r=30.25", "1500: r=32.5"],
        settings: NONE,
    },
    Program {
        name: "Acme, whose names have several words between bars",
        prints: "[Learner] Critic Loss = 0.500 | Steps = 100 | Walltime = 12.5\n[Evaluator] Episode Return = 12.250 | Steps = 100\n",
        metrics: &["100: critic_loss=0.5 walltime=12.5", "100: episode_return=12.25"],
        settings: NONE,
    },
];
