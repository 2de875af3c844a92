//! What well-known programs print, in values of our own, and what is read from it.

use super::*;
use crate::record::unmarked;

/// A program's output, the metrics that are read from it with their steps, and the settings.
struct Program {
    name: &'static str,
    prints: &'static str,
    metrics: &'static [&'static str],
    settings: &'static [&'static str],
}

const NONE: &[&str] = &[];

const PROGRAMS: &[Program] = &[
    Program {
        name: "PyTorch's MNIST example",
        prints: "Train Epoch: 1 [0/60000 (0%)]\tLoss: 2.3\nTrain Epoch: 1 [640/60000 (1%)]\tLoss: 1.5\n\n\
                 Test set: Average loss: 0.0512, Accuracy: 9834/10000 (98%)\n\n\
                 Train Epoch: 2 [0/60000 (0%)]\tLoss: 0.2\n",
        metrics: &[
            "0: loss=2.3",
            "640: loss=1.5",
            "640: test_average_loss=0.0512 test_accuracy=0.9834",
            "60000: loss=0.2",
        ],
        settings: NONE,
    },
    Program {
        name: "PyTorch's ImageNet example",
        prints: "Epoch: [0][   1/5005]\tTime  1.53 ( 1.53)\tData  0.51 ( 0.51)\tLoss 6.9e+00 (6.9e+00)\tAcc@1   0.39 (  0.39)\n\
                 Epoch: [0][5001/5005]\tTime  1.53 ( 1.53)\tLoss 6.5e+00 (6.7e+00)\tAcc@1   1.5 (  1.5)\n\
                 Test: [ 1/196]\tTime  0.5 ( 0.5)\tLoss 6.8e+00 (6.8e+00)\tAcc@1   0.40 (  0.40)\n\
                 Epoch: [1][  11/5005]\tTime  1.53 ( 1.53)\tLoss 5.9e+00 (6.9e+00)\tAcc@1   4.5 (  4.5)\n",
        metrics: &[
            "1: loss=6.9 acc@1=0.39",
            "5001: loss=6.5 acc@1=1.5",
            "5001: test_loss=6.8 test_acc@1=0.4",
            "5016: loss=5.9 acc@1=4.5",
        ],
        settings: NONE,
    },
    Program {
        name: "PyTorch's quickstart",
        prints: "Epoch 1\n-------------------------------\nloss: 2.30  [   64/60000]\nloss: 2.29  [ 6464/60000]\n\
                 Test Error: \n Accuracy: 44.9%, Avg loss: 2.15 \n\n\
                 Epoch 2\n-------------------------------\nloss: 2.1  [   64/60000]\n",
        metrics: &[
            "64: loss=2.3",
            "6464: loss=2.29",
            "6464: accuracy=0.449 avg_loss=2.15",
            "60064: loss=2.1",
        ],
        settings: NONE,
    },
    Program {
        name: "PyTorch's transfer learning",
        prints: "Epoch 0/24\n----------\ntrain Loss: 0.61 Acc: 0.69\nval Loss: 0.27 Acc: 0.90\n\n\
                 Epoch 1/24\n----------\ntrain Loss: 0.51 Acc: 0.75\nval Loss: 0.25 Acc: 0.91\n\n\
                 Training complete in 1m 12s\nBest val Acc: 0.91\n",
        metrics: &[
            "0: train_loss=0.61 acc=0.69",
            "0: val_loss=0.27 val_acc=0.9",
            "1: train_loss=0.51 acc=0.75",
            "1: val_loss=0.25 val_acc=0.91",
            "1: best_val_acc=0.91",
        ],
        settings: NONE,
    },
    Program {
        name: "PyTorch's CIFAR tutorial",
        prints: "[1,  2000] loss: 2.196\n[1,  4000] loss: 1.85\n[2,  2000] loss: 1.4\nFinished Training\n\
                 Accuracy of the network on the 10000 test images: 54 %\n",
        metrics: &["2000: loss=2.196", "4000: loss=1.85", "6000: loss=1.4", "6000: test_accuracy=0.54"],
        settings: NONE,
    },
    Program {
        name: "PyTorch's word language model",
        prints: "| epoch   1 |   200/ 2983 batches | lr 20.00 | ms/batch 5.63 | loss  7.63 | ppl  2063.49\n\
                 -----------------------------------------------------------------------------------------\n\
                 | end of epoch   1 | time: 19.98s | valid loss  5.82 | valid ppl   336.9\n",
        metrics: &["200: learning_rate=20 loss=7.63 ppl=2063.49", "200: val_loss=5.82 val_ppl=336.9"],
        settings: NONE,
    },
    Program {
        name: "nanoGPT",
        prints: "Overriding config with config/train_char.py:\n# train a small model\n\nout_dir = 'out-char'\n\
                 eval_interval = 250 # keep frequent because we'll overfit\neval_iters = 200\nbatch_size = 12\n\
                 learning_rate = 1e-3 # with baby networks can afford to go a bit higher\nmax_iters = 2000\n\
                 lr_decay_iters = 2000 # make equal to max_iters usually\nmin_lr = 1e-4\nbeta2 = 0.99\n\
                 Overriding: device = cpu\ntokens per iteration will be: 768\nnumber of parameters: 0.80M\n\
                 num decayed parameter tensors: 18, with 802,944 parameters\nusing fused AdamW: False\n\
                 step 0: train loss 4.17, val loss 4.18\niter 0: loss 4.17, time 812.34ms, mfu -100.00%\n\
                 iter 10: loss 3.2, time 23.40ms, mfu 3.5%\n",
        metrics: &["0: train_loss=4.17 val_loss=4.18", "0: loss=4.17 mfu=-100", "10: loss=3.2 mfu=3.5"],
        settings: &[
            "out_dir=out-char", "eval_interval=250", "eval_iters=200", "batch_size=12", "learning_rate=1e-3",
            "max_iters=2000", "lr_decay_iters=2000", "min_lr=1e-4", "beta2=0.99",
        ],
    },
    Program {
        name: "llm.c",
        prints: "+-----------------------+----------------------------------------------------+\n\
                 | Parameter             | Value                                              |\n\
                 | learning rate (LR)    | 6.000000e-04                                       |\n\
                 | max_steps             | -1                                                 |\n\
                 | val_num_batches       | 20                                                 |\n\
                 +-----------------------+----------------------------------------------------+\n\
                 val loss 11.009\n\
                 step    1/18865 | loss 10.945 (+nanz)| norm 15.40 (+nanz)| lr 3.00e-06 | 1234.56 ms | 52.1% bf16 MFU | 412345 tok/s\n\
                 step    2/18865 | loss 10.9 (+0.12z)| norm 14.2 (-0.1z)| lr 6.00e-06 | 1234.56 ms | 52.1% bf16 MFU | 412345 tok/s\n",
        metrics: &[
            "0: val_loss=11.009",
            "1: loss=10.945 norm=15.4 learning_rate=0.000003",
            "2: loss=10.9 norm=14.2 learning_rate=0.000006",
        ],
        settings: NONE,
    },
    Program {
        name: "Hugging Face's log",
        prints: "[INFO|trainer.py:1626] 2026-01-02 10:02:03,123 >> ***** Running training *****\n\
                 [INFO|trainer.py:1627] 2026-01-02 10:02:03,124 >>   Num examples = 6,668\n\
                 [INFO|trainer.py:1628] 2026-01-02 10:02:03,124 >>   Num Epochs = 3\n\
                 [INFO|trainer.py:1629] 2026-01-02 10:02:03,124 >>   Instantaneous batch size per device = 2\n\
                 [INFO|trainer.py:1630] 2026-01-02 10:02:03,124 >>   Total train batch size (w. parallel, distributed & accumulation) = 4\n\
                 [INFO|trainer.py:1631] 2026-01-02 10:02:03,124 >>   Gradient Accumulation steps = 2\n\
                 [INFO|trainer.py:1632] 2026-01-02 10:02:03,124 >>   Total optimization steps = 5,001\n\
                 [INFO|trainer.py:1633] 2026-01-02 10:02:03,125 >>   Number of trainable parameters = 14,823,424\n\
                 Num update steps per epoch = 160\n\
                 {'loss': 0.7, 'learning_rate': 5e-05, 'epoch': 0.02}\n\
                 [INFO|trainer.py:3721] 2026-01-02 10:03:03,125 >>   Num examples = 1667\n\
                 [INFO|trainer.py:3724] 2026-01-02 10:03:03,125 >>   Batch size = 8\n\
                 [INFO|trainer.py:2100] 2026-01-02 10:03:03,125 >> Saving model checkpoint to out/checkpoint-500\n\
                 ***** train metrics *****\n  epoch                    =        3.0\n\
                 train_loss               =     0.6028\n  train_runtime            = 0:01:03.85\n",
        metrics: &["1: epoch=0.02 learning_rate=0.00005 loss=0.7", "1: train_loss=0.6028"],
        settings: &["total_steps=5001"],
    },
    Program {
        name: "the examples of Hugging Face Accelerate",
        prints: "01/02/2026 10:02:03 - INFO - __main__ - ***** Running training *****\n\
                 01/02/2026 10:02:03 - INFO - __main__ -   Num examples = 3668\n\
                 01/02/2026 10:02:03 - INFO - __main__ -   Total optimization steps = 600\n\
                 01/02/2026 10:02:09 - INFO - __main__ - epoch 0: {'accuracy': 0.85, 'f1': 0.89}\n\
                 01/02/2026 10:02:19 - INFO - __main__ - epoch 1: {'accuracy': 0.86, 'f1': 0.9}\n",
        metrics: &["0: accuracy=0.85 f1=0.89", "1: accuracy=0.86 f1=0.9"],
        settings: &["total_steps=600"],
    },
    Program {
        name: "Hugging Face's dicts beside its bar",
        prints: "\r  0%|          | 0/20 [00:00<?, ?it/s]\r 50%|█████     | 10/20 [00:01<00:01,  9.8it/s]\
                 {'loss': '0.5', 'grad_norm': '1.2', 'learning_rate': '2.5e-05', 'epoch': '1'}\n\
                 \r 50%|█████     | 10/20 [00:01<00:01,  9.8it/s]\
                 {'eval_loss': 0.4, 'eval_runtime': 0.1, 'epoch': 1.0}\n\
                 \r100%|██████████| 20/20 [00:02<00:00,  9.8it/s]\n",
        metrics: &[
            "10: epoch=1 grad_norm=1.2 learning_rate=0.000025 loss=0.5",
            "10: epoch=1 eval_loss=0.4 eval_runtime=0.1",
        ],
        settings: NONE,
    },
    Program {
        name: "axolotl, whose dicts are on the line of the bar",
        prints: "\r  3%|▎         | 10/300 [00:20<09:40,  2.00s/it]{'loss': 1.25, 'learning_rate': 0.0002, 'epoch': 0.1}\n\
                 \r  7%|▋         | 20/300 [00:40<09:20,  2.00s/it]{'loss': 1.0, 'learning_rate': 0.0002, 'epoch': 0.2}\n\
                 \r100%|██████████| 5/5 [00:01<00:00,  4.00it/s]{'eval_loss': 0.75, 'epoch': 0.2}\n\
                 \r 10%|█         | 30/300 [01:00<09:00,  2.00s/it]{'loss': 0.75, 'learning_rate': 0.0001, 'epoch': 0.3}\n",
        metrics: &[
            "10: epoch=0.1 learning_rate=0.0002 loss=1.25",
            "20: epoch=0.2 learning_rate=0.0002 loss=1",
            "20: epoch=0.2 eval_loss=0.75",
            "30: epoch=0.3 learning_rate=0.0001 loss=0.75",
        ],
        settings: NONE,
    },
    Program {
        name: "Hugging Face's examples with Flax",
        prints: "Step... (100 | Loss: 2.125, Learning Rate: 0.0003)\n\
                 Step... (200/600 | Training Loss: 2.0, Learning Rate: 0.00025)\n\
                 Epoch... (1/3 | Eval Loss: 1.875 | Eval Perplexity: 6.5)\n\
                 Step... (300 | Loss: 1.75, Learning Rate: 0.0002)\n\
                 Computing accuracy... 0.5\n",
        metrics: &[
            "100: loss=2.125 learning_rate=0.0003",
            "200: training_loss=2 learning_rate=0.00025",
            "200: eval_loss=1.875 eval_perplexity=6.5",
            "300: loss=1.75 learning_rate=0.0002",
            "300: accuracy=0.5",
        ],
        settings: NONE,
    },
    Program {
        name: "PaddleDetection",
        prints: "[01/02 10:02:03] ppdet.engine INFO: Epoch: [0] [  0/40] learning_rate: 0.000250 loss_xywh: 1.25 loss: 21.5 eta: 0:10:02 batch_cost: 0.5 data_cost: 0.125 ips: 16.5 images/s\n\
                 [01/02 10:02:13] ppdet.engine INFO: Epoch: [0] [ 20/40] learning_rate: 0.000500 loss_xywh: 1.0 loss: 20.5 eta: 0:09:02 batch_cost: 0.5 data_cost: 0.125 ips: 16.5 images/s\n\
                 [01/02 10:02:33] ppdet.engine INFO: Epoch: [1] [ 20/40] learning_rate: 0.000500 loss_xywh: 0.75 loss: 19.5 eta: 0:08:02 batch_cost: 0.5 data_cost: 0.125 ips: 16.5 images/s\n",
        metrics: &[
            "0: learning_rate=0.00025 loss_xywh=1.25 loss=21.5 batch_cost=0.5 data_cost=0.125 ips=16.5",
            "20: learning_rate=0.0005 loss_xywh=1 loss=20.5 batch_cost=0.5 data_cost=0.125 ips=16.5",
            "60: learning_rate=0.0005 loss_xywh=0.75 loss=19.5 batch_cost=0.5 data_cost=0.125 ips=16.5",
        ],
        settings: NONE,
    },
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
        name: "YOLO",
        prints: "Image sizes 640 train, 640 val\nStarting training for 2 epochs...\n\
                 \n      Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances       Size\n\
                 \r        1/2         0G      1.182      3.402      1.342         30        640:  50%|█████     | 2/4 [00:06<00:06,  3.1s/it]\
                 \r        1/2         0G      1.1      3.3      1.3         12        640: 100%|██████████| 4/4 [00:12<00:00,  3.1s/it]\n\
                 \r                 Class     Images  Instances      Box(P          R      mAP50  mAP50-95): 100%|██████████| 1/1 [00:01<00:00,  1.5s/it]\n\
                 \x20                  all          4         17      0.857      0.536      0.612      0.448\n\
                 \n      Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances       Size\n\
                 \r        2/2         0G      1.0      3.2      1.2         12        640: 100%|██████████| 4/4 [00:12<00:00,  3.1s/it]\n",
        metrics: &[
            "2: box_loss=1.182 cls_loss=3.402 dfl_loss=1.342 instances=30",
            "4: box_loss=1.1 cls_loss=3.3 dfl_loss=1.3 instances=12",
            "4: instances=17 precision=0.857 recall=0.536 map50=0.612 map50-95=0.448",
            "8: box_loss=1 cls_loss=3.2 dfl_loss=1.2 instances=12",
        ],
        settings: NONE,
    },
    Program {
        name: "fairseq",
        prints: "2026-01-02 10:02:03 | INFO | fairseq.trainer | begin training epoch 1\n\
                 2026-01-02 10:02:03 | INFO | train_inner | epoch 001:    100 / 1000 loss=12.5, nll_loss=12.3, ppl=5000, wps=12000, ups=3.2, num_updates=100, lr=1.25e-05, gnorm=3.5, loss_scale=16, train_wall=30, wall=40\n\
                 2026-01-02 10:05:03 | INFO | valid | epoch 001 | valid on 'valid' subset | loss 9.1 | nll_loss 8.5 | ppl 362 | num_updates 1000\n",
        metrics: &[
            "100: loss=12.5 nll_loss=12.3 ppl=5000 wps=12000 ups=3.2 learning_rate=0.0000125 grad_norm=3.5 loss_scale=16 train_wall=30 wall=40",
            "1000: val_loss=9.1 val_nll_loss=8.5 val_ppl=362",
        ],
        settings: NONE,
    },
    Program {
        name: "fairseq with JSON",
        prints: "2026-01-02 10:02:03 | INFO | train_inner | {\"epoch\": 1, \"update\": 0.1, \"loss\": \"12.5\", \"num_updates\": \"100\", \"lr\": \"1.25e-05\"}\n",
        metrics: &["100: epoch=1 loss=12.5 lr=0.0000125 update=0.1"],
        settings: NONE,
    },
    Program {
        name: "Megatron-LM",
        prints: "using world size: 8, data-parallel-size: 1, tensor-model-parallel size: 8\n\
                 > learning rate decay style: cosine\n\
                 \x20[2026-01-02 10:02:03] iteration      100/  500000 | consumed samples:        25600 | elapsed time per iteration (ms): 532.1 | learning rate: 1.500000E-05 | global batch size:   256 | lm loss: 6.9E+00 | loss scale: 65536.0 | grad norm: 1.234 | number of skipped iterations:   0 | number of nan iterations:   0 |\n\
                 validation loss at iteration 100 | lm loss value: 6.8E+00 | lm loss PPL: 8.9E+02 |\n",
        metrics: &[
            "100: learning_rate=0.000015 lm_loss=6.9 loss_scale=65536 grad_norm=1.234",
            "100: val_loss_value=6.8 val_ppl=890",
        ],
        settings: NONE,
    },
    Program {
        name: "DeepSpeed",
        prints: "[2026-01-02 10:02:03,123] [INFO] [logging.py:96:log_dist] [Rank 0] step=10, skipped=0, lr=[1e-05], mom=[(0.9, 0.95)]\n\
                 [2026-01-02 10:02:03,124] [INFO] [timer.py:199:stop] epoch=0/micro_step=20/global_step=10, RunningAvgSamplesPerSec=35.2, CurrSamplesPerSec=36.1, MemAllocated=3.1GB, MaxMemAllocated=10.2GB\n\
                 steps: 10 loss: 2.5123 iter time (s): 1.234 samples/sec: 12.9\n",
        metrics: &[
            "10: skipped=0 learning_rate=0.00001",
            "10: runningavgsamplespersec=35.2 currsamplespersec=36.1",
            "10: loss=2.5123 samples/sec=12.9",
        ],
        settings: NONE,
    },
    Program {
        name: "timm",
        prints: "Train: 0 [   0/5004 (  0%)]  Loss: 6.95 (6.95)  Time: 1.5s,  170.10/s  (1.5s,  170.10/s)  LR: 1.000e-06  Data: 0.5 (0.5)\n\
                 Train: 0 [5003/5004 (100%)]  Loss: 6.8 (6.9)  Time: 1.5s,  170.10/s  (1.5s,  170.10/s)  LR: 1.000e-06  Data: 0.5 (0.5)\n\
                 Test: [   0/97]  Time: 1.5 (1.5)  Loss:   6.90 ( 6.90)  Acc@1:  0.100 ( 0.100)  Acc@5:  0.5 ( 0.5)\n\
                 Train: 1 [  50/5004 (  1%)]  Loss: 6.5 (6.6)  Time: 1.5s,  170.10/s  (1.5s,  170.10/s)  LR: 2.000e-06  Data: 0.5 (0.5)\n",
        metrics: &[
            "0: loss=6.95 learning_rate=0.000001",
            "5003: loss=6.8 learning_rate=0.000001",
            "5003: test_time=1.5 test_loss=6.9 test_acc@1=0.1 test_acc@5=0.5",
            "5054: loss=6.5 learning_rate=0.000002",
        ],
        settings: NONE,
    },
    Program {
        name: "detectron2",
        prints: "[01/02 10:02:03 d2.utils.events]:  eta: 0:12:03  iter: 19  total_loss: 1.234  loss_cls: 0.5  time: 0.51  data_time: 0.01  lr: 0.0019  max_mem: 2100M\n\
                 [01/02 10:02:13 d2.utils.events]:  eta: 0:11:53  iter: 39  total_loss: 1.1  loss_cls: 0.4  time: 0.51  data_time: 0.01  lr: 0.0039  max_mem: 2100M\n",
        metrics: &[
            "19: total_loss=1.234 loss_cls=0.5 time=0.51 data_time=0.01 learning_rate=0.0019",
            "39: total_loss=1.1 loss_cls=0.4 time=0.51 data_time=0.01 learning_rate=0.0039",
        ],
        settings: NONE,
    },
    Program {
        name: "mmengine",
        prints: "01/02 10:02:03 - mmengine - INFO - Epoch(train)   [1][10/25]  lr: 1.0000e-02  eta: 0:01:02  time: 0.0019  data_time: 0.0004  memory: 8415  loss: 1.7388\n\
                 01/02 10:02:04 - mmengine - INFO - Epoch(val)   [1][5/10]    eta: 0:00:02  time: 0.0019\n\
                 01/02 10:02:05 - mmengine - INFO - Epoch(val)   [1][10/10]    accuracy/top1: 71.5  data_time: 0.0004\n\
                 01/02 10:02:06 - mmengine - INFO - Epoch(train)   [2][10/25]  lr: 1.0000e-02  eta: 0:01:02  loss: 1.5\n",
        metrics: &[
            "10: learning_rate=0.01 time=0.0019 data_time=0.0004 memory=8415 loss=1.7388",
            "10: val_time=0.0019",
            "10: val_accuracy/top1=71.5 val_data_time=0.0004",
            "35: learning_rate=0.01 loss=1.5",
        ],
        settings: NONE,
    },
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
        name: "spaCy",
        prints: "ℹ Initial learn rate: 0.001\n\
                 E    #       LOSS TOK2VEC  LOSS NER  ENTS_F  ENTS_P  ENTS_R  SCORE \n\
                 ---  ------  ------------  --------  ------  ------  ------  ------\n\
                 \x20 0       0          0.00     58.62    0.00    0.00    0.00    0.00\n\
                 \x20 2     200        123.40    900.50   71.20   70.00   72.40    0.71\n",
        metrics: &[
            "0: loss_tok2vec=0 loss_ner=58.62 ents_f=0 ents_p=0 ents_r=0 score=0",
            "200: loss_tok2vec=123.4 loss_ner=900.5 ents_f=71.2 ents_p=70 ents_r=72.4 score=0.71",
        ],
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
        name: "torchtitan",
        prints: "[rank0]:2026-01-02 10:02:03,123 - root - INFO - Training starts at step 1, with local batch size 8, total steps 1,000 (warmup 200)\n\
                 [rank0]:2026-01-02 10:02:13,123 - root - INFO - \x1b[31mstep: 10  \x1b[32mloss:  7.2  \x1b[33mmemory: 13.50GiB(14.20%)  \x1b[34mtps: 5,123  \x1b[36mtflops: 30.10  \x1b[35mmfu: 9.65%\x1b[39m\n",
        metrics: &["10: loss=7.2 tps=5123 tflops=30.1 mfu=9.65"],
        settings: &["total_steps=1000"],
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
        name: "Weights & Biases and Optuna",
        prints: "wandb: Run summary:\nwandb:      loss 0.123\nwandb:      _step 99\n\
                 [I 2026-01-02 10:02:03,123] Trial 3 finished with value: 0.876 and parameters: {'lr': 0.01, 'n_layers': 3}. Best is trial 1 with value: 0.89.\n\
                 [I 2026-01-02 10:02:04,123] Trial 4 finished with values: [0.5, 12.25] and parameters: {'lr': 0.02}.\n\
                 [I 2026-01-02 10:02:05,123] Trial 5 pruned. \n",
        metrics: &["3: value=0.876", "4: value_0=0.5 value_1=12.25"],
        settings: NONE,
    },
    Program {
        name: "fastText",
        prints: "Read 0M words\nNumber of words:  14543\nNumber of labels: 735\n\
                 \rProgress:   0.7% words/sec/thread:   61243 lr:  0.099300 avg.loss:  9.812345 ETA:   0h 0m35s\
                 \rProgress:  62.5% words/sec/thread:   60111 lr:  0.037500 avg.loss:  6.500000 ETA:   0h 0m12s\n\
                 N\t3000\nP@1\t0.125\nR@1\t0.0625\n",
        metrics: &[
            "0: words/sec/thread=61243 learning_rate=0.0993 avg.loss=9.812345",
            "62: words/sec/thread=60111 learning_rate=0.0375 avg.loss=6.5",
            "62: p@1=0.125",
            "62: r@1=0.0625",
        ],
        settings: NONE,
    },
    Program {
        name: "OLMo",
        prints: "2026-01-02 10:02:03,123 - olmo.train - INFO - [step=10/5,000]\n    train/CrossEntropyLoss=2.5\n    train/Perplexity=1,250\n\
                 \x20   throughput/total_tokens=41,943,040\n    optim/lr=0.001\n\
                 2026-01-02 10:02:13,123 - olmo.train - INFO - [step=20/5,000]\n    train/CrossEntropyLoss=2.25\nsaved 3 files\n",
        metrics: &[
            "10: train/CrossEntropyLoss=2.5",
            "10: train/perplexity=1250",
            "10: throughput/total_tokens=41943040",
            "10: optim/lr=0.001",
            "20: train/CrossEntropyLoss=2.25",
        ],
        settings: NONE,
    },
    Program {
        name: "Composer",
        prints: "[epoch=0/1][batch=10/100]:\n\t Train loss/train/total: 2.9000\n\t Train metrics/train/LanguagePerplexity: 19.00\n\
                 [epoch=0/1][batch=20/100]:\n\t Train loss/train/total: 2.8000\n\t Train time/token: 20480\n",
        metrics: &[
            "10: train_loss/train/total=2.9",
            "10: train_metrics/train/LanguagePerplexity=19",
            "20: train_loss/train/total=2.8",
            "20: train_time/token=20480",
        ],
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
        name: "icefall",
        prints: "2026-01-02 10:02:03,123 INFO [train.py:1034] (0/4) Epoch 1, batch 50, loss[loss=0.875, ctc_loss=0.5, over 1380.00 frames.], tot_loss[loss=0.75, ctc_loss=0.25, over 20111.50 frames.], batch size: 10\n\
                 2026-01-02 10:02:13,123 INFO [train.py:1034] (0/4) Epoch 1, batch 100, loss[loss=0.625, ctc_loss=0.5, over 1380.00 frames.], tot_loss[loss=0.5, ctc_loss=0.25, over 20111.50 frames.], batch size: 10\n\
                 2026-01-02 10:02:23,123 INFO [train.py:1070] (0/4) Epoch 1, validation: loss=0.5625, ctc_loss=0.375, over 90000.00 frames. \n",
        metrics: &[
            "50: loss=0.875 ctc_loss=0.5 tot_loss=0.75 tot_loss/ctc_loss=0.25",
            "100: loss=0.625 ctc_loss=0.5 tot_loss=0.5 tot_loss/ctc_loss=0.25",
            "100: val_loss=0.5625 val_ctc_loss=0.375",
        ],
        settings: NONE,
    },
    Program {
        name: "ESPnet",
        prints: "[node3] 2026-01-02 10:02:03,123 (trainer:762) INFO: 1epoch:train:1-50batch: iter_time=0.125, loss_ctc=45.5, loss=35.5, acc=0.5\n\
                 [node3] 2026-01-02 10:02:13,123 (trainer:762) INFO: 1epoch:train:51-100batch: iter_time=0.125, loss_ctc=40.5, loss=30.5, acc=0.625\n\
                 [node3] 2026-01-02 10:02:23,123 (trainer:357) INFO: 1epoch results: [train] loss=33.0, acc=0.5625, time=5 minutes and 3.5 seconds, [valid] loss=29.5, acc=0.75\n",
        metrics: &[
            "50: iter_time=0.125 loss_ctc=45.5 loss=35.5 acc=0.5",
            "100: iter_time=0.125 loss_ctc=40.5 loss=30.5 acc=0.625",
            "100: train_loss=33 train_acc=0.5625 val_loss=29.5 val_acc=0.75",
        ],
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
        name: "GPT-NeoX",
        prints: " samples/sec: 76.5 | iteration       50/  320000 | elapsed time per iteration (ms): 419.5 | learning rate: 1.500E-06 | lm_loss: 8.500000E+00 | loss scale: 1048576.0 |\n\
                 \x20validation results at iteration 50 | lm_loss value: 8.250000E+00 | lm_loss_ppl value: 4.096000E+03 | \n",
        metrics: &[
            "50: samples/sec=76.5 learning_rate=0.0000015 lm_loss=8.5 loss_scale=1048576",
            "50: val_lm_loss_value=8.25 val_lm_loss_ppl_value=4096",
        ],
        settings: NONE,
    },
    Program {
        name: "pix2pix",
        prints: "learning rate 0.0002500 -> 0.0002500\n\
                 (epoch: 1, iters: 100, time: 0.125, data: 0.002) G_GAN: 1.125 G_L1: 38.5 D_real: 0.5 \n\
                 (epoch: 1, iters: 200, time: 0.125, data: 0.002) G_GAN: 1.25 G_L1: 37.5 D_real: 0.75 \n\
                 learning rate 0.0002500 -> 0.0001250\n\
                 (epoch: 2, iters: 100, time: 0.125, data: 0.002) G_GAN: 0.75 G_L1: 33.5 D_real: 0.625 \n",
        metrics: &[
            "100: time=0.125 g_gan=1.125 g_l1=38.5 d_real=0.5",
            "200: time=0.125 g_gan=1.25 g_l1=37.5 d_real=0.75",
            "200: learning_rate=0.000125",
            "300: time=0.125 g_gan=0.75 g_l1=33.5 d_real=0.625",
        ],
        settings: &["learning_rate=0.00025"],
    },
    Program {
        name: "StyleGAN",
        prints: "tick 0     kimg 0.0      time 39s          sec/tick 21.0    sec/kimg 656.25  maintenance 18.4   cpumem 5.67   gpumem 18.20  reserved 19.02  augment 0.000\n\
                 tick 5     kimg 20.0     time 1h 00m 45s   sec/tick 297.5   sec/kimg 74.37   maintenance 0.1    cpumem 5.64   gpumem 9.79   reserved 10.64  augment 0.125\n\
                 {\"results\": {\"fid50k_full\": 148.5}, \"metric\": \"fid50k_full\", \"total_time\": 299.71, \"num_gpus\": 1, \"timestamp\": 1666014190.06}\n",
        metrics: &[
            "0: kimg=0 sec/tick=21 sec/kimg=656.25 maintenance=18.4 cpumem=5.67 gpumem=18.2 reserved=19.02 augment=0",
            "5: kimg=20 sec/tick=297.5 sec/kimg=74.37 maintenance=0.1 cpumem=5.64 gpumem=9.79 reserved=10.64 augment=0.125",
            "5: results/fid50k_full=148.5",
        ],
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
        name: "nnU-Net",
        prints: "2026-01-02 10:02:03.950043: Epoch 1\n\
                 2026-01-02 10:02:03.954043: Current learning rate: 0.0078125\n\
                 2026-01-02 10:03:03.954043: train_loss -0.25\n\
                 2026-01-02 10:03:03.962043: Pseudo dice [0.75, 0.625]\n\
                 2026-01-02 10:03:03.966043: Epoch time: 52.03 s\n\
                 2026-01-02 10:03:03.970043: Yayy! New best EMA pseudo Dice: 0.6875\n",
        metrics: &[
            "1: learning_rate=0.0078125",
            "1: train_loss=-0.25",
            "1: pseudo_dice_0=0.75 pseudo_dice_1=0.625",
            "1: best_ema_pseudo_dice=0.6875",
        ],
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
        name: "Gaussian splatting",
        prints: "[ITER 7000] Evaluating test: L1 0.0625 PSNR 23.125 [31/08 22:43:31]\n\
                 [ITER 7000] Evaluating train: L1 0.03125 PSNR 24.25 [31/08 22:43:33]\n",
        metrics: &["7000: test_l1=0.0625 test_psnr=23.125", "7000: train_l1=0.03125 train_psnr=24.25"],
        settings: NONE,
    },
    Program {
        name: "WeNet",
        prints: "2026-01-02 10:02:03,123 DEBUG TRAIN Batch 0/0 loss 103.5 loss_att 77.25 lr 0.00000008 rank 0\n\
                 2026-01-02 10:02:13,123 DEBUG TRAIN Batch 0/100 loss 91.5 loss_att 74.5 lr 0.00000808 rank 0\n\
                 2026-01-02 10:02:23,123 DEBUG CV Batch 0/0 loss 74.25 loss_att 59.5 history loss 74.25 rank 0\n\
                 2026-01-02 10:02:33,123 INFO Epoch 0 CV info cv_loss 74.125\n\
                 2026-01-02 10:02:43,123 DEBUG TRAIN Batch 1/0 loss 54.5 loss_att 44.5 lr 0.00004008 rank 0\n\
                 2026-01-02 10:02:53,123 DEBUG TRAIN Batch 1/100 loss 48.125 loss_att 39.25 lr 0.00004808 rank 0\n",
        metrics: &[
            "0: loss=103.5 loss_att=77.25 learning_rate=0.00000008",
            "100: loss=91.5 loss_att=74.5 learning_rate=0.00000808",
            "100: val_loss=74.25 val_loss_att=59.5 val_history_loss=74.25",
            "100: cv_loss=74.125",
            "200: loss=54.5 loss_att=44.5 learning_rate=0.00004008",
            "300: loss=48.125 loss_att=39.25 learning_rate=0.00004808",
        ],
        settings: NONE,
    },
    Program {
        name: "Kaldi",
        prints: "2026-01-02 10:02:03,123 [steps/nnet3/chain/train.py:535 - train - INFO ] Iter: 1/17   Jobs: 2   Epoch: 0.33/6.0 (5.6% complete)   lr: 0.001760   \n",
        metrics: &["1: learning_rate=0.00176"],
        settings: NONE,
    },
    Program {
        name: "Swin",
        prints: "[2026-01-02 10:02:03 swin_tiny](main.py 191): INFO Train: [0/300][10/1251]\teta 0:12:03 lr 0.000002\ttime 0.5000 (0.6000)\tloss 6.7500 (6.8750)\tgrad_norm 1.1250 (1.2500)\tmem 5000MB\n\
                 [2026-01-02 10:02:03 swin_tiny](main.py 235): INFO Test: [0/98]\tTime 0.500 (0.500)\tLoss 6.5000 (6.5000)\tAcc@1 0.125 (0.125)\tMem 5000MB\n\
                 [2026-01-02 10:02:03 swin_tiny](main.py 191): INFO Train: [1/300][10/1251]\teta 0:12:03 lr 0.000003\ttime 0.5000 (0.6000)\tloss 6.2500 (6.5000)\tgrad_norm 1.0000 (1.1250)\tmem 5000MB\n",
        metrics: &[
            "10: learning_rate=0.000002 loss=6.75 grad_norm=1.125",
            "10: test_loss=6.5 test_acc@1=0.125",
            "1261: learning_rate=0.000003 loss=6.25 grad_norm=1",
        ],
        settings: NONE,
    },
    Program {
        name: "PyTorch's DCGAN",
        prints: "[0/5][0/1583]\tLoss_D: 0.5000\tLoss_G: 5.1250\n\
                 [0/5][50/1583]\tLoss_D: 0.3750\tLoss_G: 5.0000\n\
                 [1/5][50/1583]\tLoss_D: 0.2500\tLoss_G: 4.7500\n",
        metrics: &[
            "0: loss_d=0.5 loss_g=5.125",
            "50: loss_d=0.375 loss_g=5",
            "1633: loss_d=0.25 loss_g=4.75",
        ],
        settings: NONE,
    },
    Program {
        name: "PyTorch-GAN and Keras-GAN",
        prints: "[Epoch 0/200] [Batch 0/938] [D loss: 0.6875] [G loss: 0.75]\n\
                 [Epoch 0/200] [Batch 1/938] [D loss: 0.625] [G loss: 0.5]\n\
                 [Epoch 1/200] [Batch 1/938] [D loss: 0.5] [G loss: 0.375]\n\
                 2000 [D loss: 0.25, acc.: 50.00%] [G loss: 0.125]\n",
        metrics: &[
            "0: d_loss=0.6875 g_loss=0.75",
            "1: d_loss=0.625 g_loss=0.5",
            "939: d_loss=0.5 g_loss=0.375",
            "2000: d_loss=0.25 g_loss=0.125",
        ],
        settings: NONE,
    },
    Program {
        name: "Coqui",
        prints: "\n\
                 \x20  --> STEP: 24/100 -- GLOBAL_STEP: 1024\n\
                 \x20    | > loss: 1.25000  (1.30000)\n\
                 \x20    | > grad_norm: 0.50000  (0.60000)\n\
                 \x20    | > step_time: 0.5000  (0.6000)\n",
        metrics: &["1024: loss=1.25", "1024: grad_norm=0.5", "1024: step_time=0.5"],
        settings: NONE,
    },
    Program {
        name: "Darknet",
        prints: " 1: 1234.500000, 1234.500000 avg loss, 0.000000 rate, 1.230000 seconds, 64 images, 100.5 hours left\n\
                 \x202: 1134.500000, 1224.500000 avg loss, 0.000000 rate, 1.230000 seconds, 128 images, 100.4 hours left\n",
        metrics: &["1: loss=1234.5 avg_loss=1234.5 rate=0", "2: loss=1134.5 avg_loss=1224.5 rate=0"],
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
        name: "COCO's evaluation",
        prints: " Average Precision  (AP) @[ IoU=0.50:0.95 | area=   all | maxDets=100 ] = 0.375\n\
                 \x20Average Precision  (AP) @[ IoU=0.50      | area=   all | maxDets=100 ] = 0.625\n\
                 \x20Average Precision  (AP) @[ IoU=0.50:0.95 | area= small | maxDets=100 ] = -1.000\n\
                 \x20Average Recall     (AR) @[ IoU=0.50:0.95 | area=   all | maxDets=  1 ] = 0.25\n",
        metrics: &["0: ap=0.375", "0: ap50=0.625", "0: ar_1=0.25"],
        settings: NONE,
    },
    Program {
        name: "Rasa, whose bar is over epochs",
        prints: "\rEpochs:   0%|          | 0/100 [00:00<?, ?it/s]\rEpochs:   1%|          | 1/100 [00:01<01:40,  1.0s/it, t_loss=1.25, i_acc=0.5]\rEpochs:   2%|          | 2/100 [00:02<01:40,  1.0s/it, t_loss=1.125, i_acc=0.625]\n",
        metrics: &["1: t_loss=1.25 i_acc=0.5", "2: t_loss=1.125 i_acc=0.625"],
        settings: NONE,
    },
    Program {
        name: "ms-swift",
        prints: "{'loss': 1.25, 'memory(GiB)': 20.5, 'epoch': 0.1, 'global_step/max_steps': '10/100', 'percentage': '10.00%', 'remaining_time': '3m 0s'}\n",
        metrics: &["10: epoch=0.1 loss=1.25 memory(GiB)=20.5"],
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
        name: "GPT-2",
        prints: "[10 | 12.34] loss=3.125 avg=3.25\n\
                 [20 | 22.34] loss=3.0 avg=3.125\n",
        metrics: &["10: loss=3.125 avg=3.25", "20: loss=3 avg=3.125"],
        settings: NONE,
    },
    Program {
        name: "llama2.c",
        prints: "0 | loss 10.5000 | lr 0.000000e+00 | 1234.50ms | mfu -100.00%\n\
                 10 | loss 9.5000 | lr 5.000000e-06 | 234.50ms | mfu 12.50%\n",
        metrics: &["0: loss=10.5 learning_rate=0 mfu=-100", "10: loss=9.5 learning_rate=0.000005 mfu=12.5"],
        settings: NONE,
    },
    Program {
        name: "YOLACT",
        prints: "[  0]       0 || B: 4.500 | C: 12.250 | T: 23.125 || ETA: 1 day, 2:03:04 || timer: 0.500\n\
                 [  0]      10 || B: 4.250 | C: 12.125 | T: 22.750 || ETA: 1 day, 2:03:04 || timer: 0.500\n",
        metrics: &["0: b=4.5 c=12.25 t=23.125 timer=0.5", "10: b=4.25 c=12.125 t=22.75 timer=0.5"],
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
        name: "TensorFlow's object detection",
        prints: "INFO:tensorflow:Step 100 per-step time 0.512s\n\
                 INFO:tensorflow:{'Loss/classification_loss': 0.5,\n\
                 \x20'Loss/total_loss': 1.25,\n\
                 \x20'learning_rate': 0.0625}\n",
        metrics: &[
            "100: loss/classification_loss=0.5",
            "100: loss/total_loss=1.25",
            "100: learning_rate=0.0625",
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
        name: "OpenCLIP",
        prints: "2026-01-02,10:02:03 | INFO | Eval Epoch: 1 clip_val_loss: 3.5000\tnum_samples: 5000.0000\n",
        metrics: &["1: eval_clip_val_loss=3.5 eval_num_samples=5000"],
        settings: NONE,
    },
    Program {
        name: "dlib",
        prints: "  iterations without progress threshold:      100\n  learning rate shrink factor:                0.5\n\n\
                 step#: 0     learning rate: 0.25    average loss: 8.5      steps without apparent progress: 0\n\
                 step#: 40    learning rate: 0.125   average loss: 4.25     steps without apparent progress: 12\n",
        metrics: &["0: learning_rate=0.25 average_loss=8.5", "40: learning_rate=0.125 average_loss=4.25"],
        settings: NONE,
    },
    Program {
        name: "Caffe",
        prints: "I0102 10:02:03.123456  1400 solver.cpp:337] Iteration 0, Testing net (#0)\n\
                 I0102 10:02:04.123456  1400 solver.cpp:404]     Test net output #0: accuracy = 0.125\n\
                 I0102 10:02:05.123456  1400 solver.cpp:228] Iteration 0 (0 iter/s, 0.0147s/100 iter), loss = 2.5\n\
                 I0102 10:02:05.123556  1400 sgd_solver.cpp:106] Iteration 0, lr = 0.01\n\
                 I0102 10:02:06.123456  1400 solver.cpp:228] Iteration 50 (206.869 iter/s, 0.482843s/100 iter), loss = 1.5\n\
                 I0102 10:02:06.123556  1400 solver.cpp:337] Iteration 100, Testing net (#0)\n\
                 I0102 10:02:07.123456  1400 solver.cpp:404]     Test net output #0: accuracy = 0.75\n",
        metrics: &[
            "0: test_accuracy=0.125",
            "0: loss=2.5",
            "0: learning_rate=0.01",
            "50: loss=1.5",
            "100: test_accuracy=0.75",
        ],
        settings: NONE,
    },
    Program {
        name: "Sockeye, whose batches are counted over the training",
        prints: "[2026-01-02:10:02:03:INFO:sockeye.training:__call__] Epoch[0] Batch [20]\tSpeed: 52.5 samples/sec 1432.5 tokens/sec\tperplexity=512.5\n\
                 [2026-01-02:10:03:03:INFO:sockeye.training:__call__] Epoch[0] Batch [40]\tSpeed: 52.5 samples/sec 1432.5 tokens/sec\tperplexity=256.5\n\
                 [2026-01-02:10:04:03:INFO:sockeye.training:__call__] Epoch[1] Batch [60]\tSpeed: 52.5 samples/sec 1432.5 tokens/sec\tperplexity=128.5\n\
                 [2026-01-02:10:05:03:INFO:sockeye.training:__call__] Epoch[2] Batch [80]\tSpeed: 52.5 samples/sec 1432.5 tokens/sec\tperplexity=64.5\n",
        metrics: &[
            "20: speed=52.5 perplexity=512.5",
            "40: speed=52.5 perplexity=256.5",
            "60: speed=52.5 perplexity=128.5",
            "80: speed=52.5 perplexity=64.5",
        ],
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
        name: "HiFi-GAN, whose names have several words",
        prints: "Batch size per GPU : 4\nSteps : 0, Gen Loss Total : 96.5, Mel-Spec. Error : 1.5\n\
                 Steps : 10, Gen Loss Total : 48.5, Mel-Spec. Error : 0.75\nGen Loss Total : 1.25\n",
        metrics: &[
            "0: gen_loss_total=96.5 mel-spec_error=1.5",
            "10: gen_loss_total=48.5 mel-spec_error=0.75",
        ],
        settings: NONE,
    },
    Program {
        name: "PaddleOCR",
        prints: "[2026/01/02 10:02:03] ppocr INFO: epoch: [1/4], global_step: 10, lr: 0.000125, acc: 0.25, loss: 2.5\n\
                 [2026/01/02 10:02:13] ppocr INFO: cur metric, acc: 0.5, norm_edit_dis: 0.75, fps: 430.5\n\
                 [2026/01/02 10:02:13] ppocr INFO: best metric, acc: 0.5, norm_edit_dis: 0.75, fps: 430.5, best_epoch: 1\n",
        metrics: &[
            "10: learning_rate=0.000125 acc=0.25 loss=2.5",
            "10: cur_metric_acc=0.5 cur_metric_norm_edit_dis=0.75 cur_metric_fps=430.5",
            "10: best_metric_acc=0.5 best_metric_norm_edit_dis=0.75 best_metric_fps=430.5",
        ],
        settings: NONE,
    },
    Program {
        name: "Darknet with mAP",
        prints: "[yolo] params: iou loss: ciou (4), iou_norm: 0.25, obj_norm: 1.00\n\
                 Learning Rate: 0.005, Momentum: 0.9, Decay: 0.0005\n\
                 \x2010: 3.5, 4.5 avg loss, 0.00125 rate, 3.75 seconds, 640 images, 2.5 hours left\n\
                 \x20mean average precision (mAP@0.50) = 0.625, or 62.5 % \n",
        metrics: &["10: loss=3.5 avg_loss=4.5 rate=0.00125", "10: mean_average_precision=0.625"],
        settings: &["iou_norm=0.25", "obj_norm=1", "learning_rate=0.005", "momentum=0.9", "decay=0.0005"],
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
        name: "Coqui's evaluation",
        prints: " | > Torch seed: 54321\n\x1b[1m   --> STEP: 24/100 -- GLOBAL_STEP: 24\x1b[0m\n     | > loss: 1.25000  (1.30000)\n     | > log_mle: -0.5  (0.75)\n\n\
                 \x1b[1m > EVALUATION \x1b[0m\n\n  \x1b[1m--> EVAL PERFORMANCE\x1b[0m\n     | > avg_loss:\x1b[92m 2.5 \x1b[0m(-0.25)\n     | > avg_log_mle:\x1b[92m 0.125 \x1b[0m(+0.5)\n     | > files: 3\n\
                 \x20> other: 0.5\n     | > again: 0.5\n",
        metrics: &["24: loss=1.25", "24: log_mle=-0.5", "24: avg_loss=2.5", "24: avg_log_mle=0.125"],
        settings: NONE,
    },
    Program {
        name: "Catalyst, whose lines end their head with the part of the data",
        prints: "1/2 * Epoch 1 (train): loss=0.75 | accuracy01=0.5\n1/2 * Epoch 1 (valid): loss=0.5 | accuracy01=0.625\n",
        metrics: &["1: loss=0.75 accuracy01=0.5", "1: val_loss=0.5 val_accuracy01=0.625"],
        settings: NONE,
    },
    Program {
        name: "DeepSpeech",
        prints: "Epoch 0 |   Training | Elapsed Time: 0:00:10 | Steps: 10 | Loss: 24.5\n\
                 Epoch 0 | Validation | Elapsed Time: 0:00:05 | Steps: 15 | Loss: 20.5 | Dataset: dev.csv\n",
        metrics: &["10: loss=24.5", "15: val_loss=20.5"],
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
        name: "candle's examples",
        prints: "   1 train loss:  0.75000 test acc: 81.25%\n   2 train loss:  0.50000 test acc: 87.50%\n3 files: 0.5\n",
        metrics: &["1: train_loss=0.75 test_acc=0.8125", "2: train_loss=0.5 test_acc=0.875"],
        settings: NONE,
    },
    Program {
        name: "Flair",
        prints: "2026-01-02 10:02:03,123 epoch 1 - iter 10/20 - loss 2.5000 - time (sec): 1.25 - lr: 0.100000\n\
                 2026-01-02 10:02:04,123 DEV : loss 0.5 - f1-score (micro avg)  0.75\n",
        metrics: &["10: loss=2.5 learning_rate=0.1", "10: val_loss=0.5 val_f1-score=0.75"],
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
        name: "YOLOv7",
        prints: "\n     Epoch   gpu_mem       box       obj       cls     total    labels  img_size\n\
                 \r       0/1     1.25G   0.0625   0.03125   0.0125   0.10625        12       640: 100%|██████████| 8/8 [00:12<00:00,  1.5s/it]\n\
                 \x20              Class      Images      Labels           P           R      mAP@.5  mAP@.5:.95: 100%|██████████| 1/1 [00:01<00:00,  1.5s/it]\n\
                 \x20                all          16          29       0.5        0.25       0.125       0.0625\n",
        metrics: &[
            "8: box=0.0625 obj=0.03125 cls=0.0125 total=0.10625 labels=12",
            "8: labels=29 precision=0.5 recall=0.25 map50=0.125 map50-95=0.0625",
        ],
        settings: NONE,
    },
    Program {
        name: "DeePMD-kit's table behind a sign, with one measure only",
        prints: "#  step      rmse_val    rmse_trn\n      0      2.5e+01    1.5e+01\n     50      1.5e+01    1.25e+01\n",
        metrics: &["0: rmse_val=25 rmse_trn=15", "50: rmse_val=15 rmse_trn=12.5"],
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
        name: "Stable-Baselines3's evaluation",
        prints: "Eval num_timesteps=500, episode_reward=95.25 +/- 5.50\nEpisode length: 95.25 +/- 5.50\nNew best mean reward!\n\
                 Eval num_timesteps=1000, episode_reward=120.5 +/- 0.00\n",
        metrics: &["500: eval_episode_reward=95.25", "1000: eval_episode_reward=120.5"],
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
        name: "Lightning's results of a test",
        prints: "step 40: loss 0.5\n┃        Test metric        ┃       DataLoader 0        ┃\n│         test_acc          │           0.75            │\n│         test_loss         │           0.25            │\n└───────────────────────────┘\n│ files │ 12 │\ndone 1\n",
        metrics: &["40: loss=0.5", "40: test_acc=0.75 test_loss=0.25 files=12"],
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
        name: "Marian's cost over its labels, means of epochs, and places of two kinds",
        prints: "[2026-01-02 10:02:03] Ep. 1 : Up. 50 : Sen. 6,400 : Cost 8.25 * 1,234,567 @ 12,345 after 1,234,567 : Time 12.45s : gNorm 1.5\n\
                 step 60: train/loss_epoch 0.5, loss_step 0.25\n\
                 Step/Epoch [70/1][70/1234]:total_eta: 1 day, 2:03:04, loss:0.125\n",
        metrics: &[
            "50: cost=8.25 grad_norm=1.5",
            "60: train/loss_epoch=0.5 loss_step=0.25",
            "70: loss=0.125",
        ],
        settings: NONE,
    },
    Program {
        name: "a dict behind other values",
        prints: "step: 10, loss: 0.5, more: {'mae': 0.25}\nstep: 20, loss: 0.25, more: {'loss': 0.5, 'mae': 0.125}\n",
        metrics: &["10: loss=0.5 mae=0.25", "20: loss=0.5 mae=0.125"],
        settings: NONE,
    },
    Program {
        name: "a loop of CIFAR whose shares have fractions",
        prints: "\nEpoch: 0\n [============ 40/40 ===========>]  Step: 25ms | Tot: 10s | Loss: 1.5 | Acc: 45.125% (1805/4000)\n\
                 Loss: 1.25 | Acc: 50.0% (500/1000)\n\nEpoch: 1\n\
                 \x20[============ 40/40 ===========>]  Step: 25ms | Tot: 10s | Loss: 1.0 | Acc: 55.125% (2205/4000)\n",
        metrics: &["40: loss=1.5 acc=0.45125", "40: loss=1.25 acc=0.5", "80: loss=1 acc=0.55125"],
        settings: NONE,
    },
    Program {
        name: "PyTorch's tutorial on training",
        prints: "EPOCH 1:\n  batch 100 loss: 1.5\n  batch 200 loss: 0.5\nLOSS train 0.5 valid 0.25\nEPOCH 2:\n  batch 100 loss: 0.25\n",
        metrics: &["100: loss=1.5", "200: loss=0.5", "200: train_loss=0.5 val_loss=0.25", "300: loss=0.25"],
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
        name: "Flair, with a bar of an evaluation beside lines that name their steps",
        prints: "2026-01-02 10:02:03,187 epoch 1 - iter 4/8 - loss 2.50000000 - lr: 0.100000\n\
                 2026-01-02 10:02:04,187 epoch 1 - iter 8/8 - loss 1.25000000 - lr: 0.100000\n\
                 \r  0%|          | 0/3 [00:00<?, ?it/s]\r100%|##########| 3/3 [00:02<00:00,  4.55it/s]\
                 2026-01-02 10:02:05,567 DEV : loss 0.5 - f1-score (micro avg)  0.75\n\
                 2026-01-02 10:02:06,877 epoch 2 - iter 4/8 - loss 0.50000000 - lr: 0.100000\n",
        metrics: &[
            "4: loss=2.5 learning_rate=0.1",
            "8: loss=1.25 learning_rate=0.1",
            "8: val_loss=0.5 val_f1-score=0.75",
            "12: loss=0.5 learning_rate=0.1",
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
        name: "MMDetection's configuration",
        prints: "2026-01-02 10:02:03,075 - mmdet - INFO - Config:\nmodel = dict(\n    type='FasterRCNN',\n\
                 \u{20}   train_cfg=dict(rpn=dict(assigner=dict(pos_iou_thr=0.75, neg_iou_thr=0.25))),\n\
                 \u{20}   test_cfg=dict(\n        score_thr=0.05,\n        nms=dict(type='nms', iou_threshold=0.5)))\n\
                 optimizer = dict(type='SGD', lr=0.02, momentum=0.9)\nlr_config = dict(policy='step', step=8)\n\
                 2026-01-02 10:02:21,385 - mmdet - INFO - Epoch [1][50/300]\tlr: 2.000e-03, acc: 90.5, loss: 1.5\n",
        metrics: &["50: learning_rate=0.002 acc=90.5 loss=1.5"],
        settings: &[
            "pos_iou_thr=0.75", "neg_iou_thr=0.25", "score_thr=0.05", "iou_threshold=0.5",
            "learning_rate=0.02", "momentum=0.9",
        ],
    },
    Program {
        name: "DETR, whose evaluation is summed up as the training is",
        prints: "Epoch: [0]  [ 0/50]  eta: 0:00:19  lr: 0.000100  class_error: 94.5  loss: 8.5 (8.5)  time: 1.5\n\
                 Epoch: [0]  [49/50]  eta: 0:00:00  lr: 0.000100  class_error: 48.5  loss: 5.5 (6.5)  time: 0.5\n\
                 Epoch: [0] Total time: 0:00:19 (0.3890 s / it)\n\
                 Averaged stats: lr: 0.000100  class_error: 48.5  loss: 5.5 (6.5)\n\
                 Test:  [ 0/16]  eta: 0:00:03  class_error: 48.75  loss: 5.75 (5.75)  time: 0.5\n\
                 Test:  [15/16]  eta: 0:00:00  class_error: 48.25  loss: 5.25 (5.5)  time: 0.5\n\
                 Test: Total time: 0:00:03 (0.2107 s / it)\n\
                 Averaged stats: class_error: 48.25  loss: 5.25 (5.5)\n\
                 Epoch: [1]  [ 0/50]  eta: 0:00:19  lr: 0.000100  class_error: 44.5  loss: 4.5 (4.5)  time: 1.5\n",
        metrics: &[
            "0: learning_rate=0.0001 class_error=94.5 loss=8.5 time=1.5",
            "49: learning_rate=0.0001 class_error=48.5 loss=5.5 time=0.5",
            "49: learning_rate=0.0001 class_error=48.5 loss=5.5",
            "49: test_class_error=48.75 test_loss=5.75 test_time=0.5",
            "49: test_class_error=48.25 test_loss=5.25 test_time=0.5",
            "49: test_class_error=48.25 test_loss=5.25",
            "50: learning_rate=0.0001 class_error=44.5 loss=4.5 time=1.5",
        ],
        settings: NONE,
    },
    Program {
        name: "the summary of PyTorch's ImageNet example",
        prints: "Epoch: [0][   1/5005]\tTime  1.53 ( 1.53)\tLoss 6.9e+00 (6.9e+00)\tAcc@1   0.5 (  0.5)\tAcc@5   1.5 (  1.5)\n\
                 Test: [ 1/196]\tTime  0.5 ( 0.5)\tLoss 6.8e+00 (6.8e+00)\tAcc@1   0.25 (  0.25)\tAcc@5   1.25 (  1.25)\n\
                 \u{20} * Acc@1 0.750 Acc@5 1.750\n\
                 Epoch: [1][   1/5005]\tTime  1.53 ( 1.53)\tLoss 5.9e+00 (6.9e+00)\tAcc@1   4.5 (  4.5)\tAcc@5   5.5 (  5.5)\n",
        metrics: &[
            "1: loss=6.9 acc@1=0.5 acc@5=1.5",
            "1: test_loss=6.8 test_acc@1=0.25 test_acc@5=1.25",
            "1: test_acc@1=0.75 test_acc@5=1.75",
            "5006: loss=5.9 acc@1=4.5 acc@5=5.5",
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
        name: "OLMo-core, with the step behind fields between tabs, and with names of several words behind a slash",
        prints: "2026-01-02 10:02:03.123\thost:0\tolmo_core.train.callbacks.console_logger:87\tINFO\t[step=1/1000,epoch=1,eta=2 hours34 min]\n\
                 \u{20}   train/CE loss=9.5\n    train/PPL=13,000\n    optim/total grad norm=1.5\n\
                 2026-01-02 10:02:04.123\thost:0\tolmo_core.train.callbacks.console_logger:91\tINFO\t[step=2/1000,epoch=1]\n\
                 2026-01-02 10:02:05.123\thost:0\tolmo_core.train.callbacks.console_logger:87\tINFO\t[step=501/1000,epoch=2,eta=1 hour(hard stop)]\n\
                 \u{20}   train/CE loss=7.5\n\
                 2026-01-02 10:02:06.123\thost:0\tolmo_core.train.callbacks.evaluator_callback:87\tINFO\tEval metrics\n\
                 \u{20}   lm/c4-validation/CE loss=7.25\n",
        metrics: &[
            "1: train/ce_loss=9.5",
            "1: train/ppl=13000",
            "1: optim/total_grad_norm=1.5",
            "501: train/ce_loss=7.5",
            "501: lm/c4-validation/ce_loss=7.25",
        ],
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
        name: "a bar that draws the step of the training again and again, and of a large one only some digits",
        prints: "\r 10%|#         | 100/1000 [00:10<01:30, 10.0it/s, global_step=40, loss=1.5]\
                 \r 15%|#5        | 150/1000 [00:15<01:25, 10.0it/s, global_step=40, loss=1.5]\
                 \r 20%|##        | 200/1000 [00:20<01:20, 10.0it/s, global_step=1e+4, loss=0.5]\n",
        metrics: &["40: loss=1.5", "140: loss=0.5"],
        settings: NONE,
    },
    Program {
        name: "InsightFace, which verifies on several sets at a step",
        prints: "Training: 2026-01-02 10:02:03,123-Speed 2837.12 samples/sec   Loss 45.5000   LearningRate 0.100000   Epoch: 0   Global Step: 2000   Required: 23 hours\n\
                 Training: 2026-01-02 10:02:04,123-[lfw][2000]XNorm: 21.500000\n\
                 Training: 2026-01-02 10:02:04,123-[lfw][2000]Accuracy-Flip: 0.98500+-0.00531\n\
                 Training: 2026-01-02 10:02:05,123-[cfp_fp][2000]XNorm: 18.500000\n\
                 Training: 2026-01-02 10:02:05,123-[cfp_fp][2000]Accuracy-Flip: 0.90500+-0.01107\n\
                 [worker][12345]queue: 3.5\n[worker][12345]accuracy: 0.5\n",
        metrics: &[
            "2000: loss=45.5 learning_rate=0.1",
            "2000: lfw/xnorm=21.5",
            "2000: lfw/accuracy-flip=0.985",
            "2000: cfp_fp/xnorm=18.5",
            "2000: cfp_fp/accuracy-flip=0.905",
            "2000: accuracy=0.5",
        ],
        settings: NONE,
    },
    Program {
        name: "PyTorch's DCGAN, with names that are calls",
        prints: "Generator(\n  (main): Sequential(\n    (1): BatchNorm2d(512, eps=1e-05, momentum=0.1)\n  )\n)\n\
                 [0/25][0/782] Loss_D: 1.75 Loss_G: 4.75 D(x): 0.4750 D(G(z)): 0.4875 / 0.0125\n\
                 [0/25][1/782] Loss_D: 1.25 Loss_G: 5.75 D(x): 0.6500 D(G(z)): 0.4625/0.0625\n\
                 [1/25][0/782] Loss_D: 0.75 Loss_G: 2.25 D(x): 0.8125 D(G(z)): 0.2500 / 0.0625\n",
        metrics: &[
            "0: loss_d=1.75 loss_g=4.75 d_x=0.475 d_g_z=0.4875",
            "1: loss_d=1.25 loss_g=5.75 d_x=0.65 d_g_z=0.4625",
            "782: loss_d=0.75 loss_g=2.25 d_x=0.8125 d_g_z=0.25",
        ],
        settings: NONE,
    },
    Program {
        name: "llm.c, with a result as a fraction and what it is",
        prints: "step   10/30 | loss 10.500000 (+nanz)| norm 8.5000 (+nanz)| lr 8.50e-06 | 2800.41 ms\n\
                 evaluating HellaSwag: 0/79\revaluating HellaSwag: 70/79\rHellaSwag: 2461/10042 = 0.245071\n",
        metrics: &["10: loss=10.5 norm=8.5 learning_rate=0.0000085", "10: hellaswag=0.245071"],
        settings: NONE,
    },
    Program {
        name: "Megatron-LM's evaluation on two sets",
        prints: " iteration      100/     200 | lm loss: 7.500000E+00 | loss scale: 32768.0 | grad norm: 3.125 |\n\
                 \u{20}validation loss at iteration 100 on validation set | lm loss value: 7.250000E+00 | lm loss PPL: 1.250000E+03 | \n\
                 \u{20}validation loss at iteration 100 on test set | lm loss value: 7.125000E+00 | lm loss PPL: 1.125000E+03 | \n",
        metrics: &[
            "100: lm_loss=7.5 loss_scale=32768 grad_norm=3.125",
            "100: val_loss_value=7.25 val_ppl=1250",
            "100: test_loss_value=7.125 test_ppl=1125",
        ],
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
        name: "Darknet, which repeats the last result beside the next step",
        prints: " 1000: 3.875, 4.375 avg loss, 0.001 rate, 5.5 seconds, 64000 images, 9.5 hours left\n\
                 \u{20}mean_average_precision (mAP@0.5) = 0.578125 \n\
                 \u{20}Last accuracy mAP@0.5 = 57.81 %, best = 57.81 % \n\
                 \u{20}1001: 3.75, 4.25 avg loss, 0.001 rate, 5.5 seconds, 64064 images, 9.5 hours left\n\
                 -> last accuracy mAP@0.50=57.81%, best=58.25% at iteration #900\n",
        metrics: &[
            "1000: loss=3.875 avg_loss=4.375 rate=0.001",
            "1000: mean_average_precision=0.578125",
            "1000: last_map@0.5=0.5781 best_map@0.5=0.5781",
            "1001: loss=3.75 avg_loss=4.25 rate=0.001",
            "1001: last_map@0.50=0.5781 best_map@0.50=0.5825",
        ],
        settings: NONE,
    },
    Program {
        name: "WeNet, whose lines end with the rank and name the epoch before the batch",
        prints: "2026-01-02 10:02:03,123 INFO Epoch 0 TRAIN info lr 0.0\n\
                 2026-01-02 10:03:03,123 DEBUG TRAIN Batch 0/50 loss 9.5 loss_ctc 8.25 lr 0.00025 rank 0\n\
                 2026-01-02 10:04:03,123 DEBUG TRAIN Batch 0/100 loss 7.5 loss_ctc 6.25 lr 0.0005 rank 0\n\
                 2026-01-02 10:05:03,123 DEBUG CV Batch 0/50 loss 6.5 loss_ctc 6.125 rank 0\n\
                 2026-01-02 10:06:03,123 INFO Epoch 0 CV info cv_loss 6.75\n\
                 2026-01-02 10:07:03,123 DEBUG TRAIN Batch 1/50 loss 5.5 loss_ctc 5.25 lr 0.00075 rank 0\n",
        metrics: &[
            "0: learning_rate=0",
            "50: loss=9.5 loss_ctc=8.25 learning_rate=0.00025",
            "100: loss=7.5 loss_ctc=6.25 learning_rate=0.0005",
            "100: val_loss=6.5 val_loss_ctc=6.125",
            "100: cv_loss=6.75",
            "150: loss=5.5 loss_ctc=5.25 learning_rate=0.00075",
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
        name: "a neural operator, whose names begin with digits",
        prints: "[0] time=2.50, avg_loss=0.7500, train_err=22.2500\nEval: 16_h1=0.4375, 16_l2=0.3125\n",
        metrics: &["0: time=2.5 avg_loss=0.75 train_err=22.25", "0: eval_16_h1=0.4375 eval_16_l2=0.3125"],
        settings: NONE,
    },
    Program {
        name: "PointNet, whose bars show no values below the heading of an epoch",
        prints: "Epoch 1 (1/20):\n  0%|          | 0/40 [00:00<?, ?it/s]\r100%|##########| 40/40 [00:08<00:00, 5.00it/s]\n\
                 Train Instance Accuracy: 0.5000\n100%|##########| 10/10 [00:01<00:00, 9.00it/s]\n\
                 Test Instance Accuracy: 0.6250, Class Accuracy: 0.5625\nBest Instance Accuracy: 0.6250, Class Accuracy: 0.5625\n\
                 Epoch 2 (2/20):\n100%|##########| 40/40 [00:08<00:00, 5.00it/s]\nTrain Instance Accuracy: 0.7500\n",
        metrics: &[
            "1: train_instance_accuracy=0.5",
            "1: test_instance_accuracy=0.625 test_class_accuracy=0.5625",
            "1: best_instance_accuracy=0.625 best_class_accuracy=0.5625",
            "2: train_instance_accuracy=0.75",
        ],
        settings: NONE,
    },
    Program {
        name: "a U-Net, whose bar counts images and whose evaluation has a bar between its drawings",
        prints: "Epoch 1/2:   0%|          | 0/400 [00:00<?, ?img/s]\rEpoch 1/2:  50%|#####     | 200/400 [00:20<00:20, 10.00img/s, loss (batch)=0.75]\n\
                 Validation round:  50%|#####     | 5/10 [00:01<00:01, 5.00batch/s]\nINFO: Validation Dice score: 0.625\n\
                 Epoch 1/2: 100%|##########| 400/400 [00:40<00:00, 10.00img/s, loss (batch)=0.5]\n",
        metrics: &["200: loss (batch)=0.75", "200: val_dice_score=0.625", "400: loss (batch)=0.5"],
        settings: NONE,
    },
    Program {
        name: "a loop of CIFAR whose bars count the training and the test below one heading",
        prints: "Epoch: 0\n [==>..]  Step: 61ms | Tot: 1s61ms | Loss: 2.250 | Acc: 12.500% (25/200) 1/2 \n \
                 [====>]  Step: 61ms | Tot: 2s61ms | Loss: 2.125 | Acc: 25.000% (100/400) 2/2 \n \
                 [====>]  Step: 21ms | Tot: 21ms | Loss: 1.750 | Acc: 37.500% (75/200) 1/1 \n\n\
                 Epoch: 1\n [==>..]  Step: 61ms | Tot: 1s61ms | Loss: 1.250 | Acc: 50.000% (100/200) 1/2 \n",
        metrics: &[
            "1: loss=2.25 acc=0.125",
            "2: loss=2.125 acc=0.25",
            "2: eval_loss=1.75 eval_acc=0.375",
            "3: loss=1.25 acc=0.5",
        ],
        settings: NONE,
    },
    Program {
        name: "AllenNLP, whose table has the parts of the data as columns behind what its logger writes",
        prints: "2026-01-02 10:02:03,123 - INFO - allennlp.training.gradient_descent_trainer - Epoch 0/4\n\
                 2026-01-02 10:02:03,123 - INFO - allennlp.training.gradient_descent_trainer - Training\n\
                 accuracy: 0.5000, loss: 0.7500 ||: 100%|##########| 20/20 [00:02<00:00, 10.00it/s]\n\
                 2026-01-02 10:02:05,123 - INFO - allennlp.training.gradient_descent_trainer - Validating\n\
                 accuracy: 0.6250, loss: 0.6875 ||: 100%|##########| 5/5 [00:01<00:00, 5.00it/s]\n\
                 2026-01-02 10:02:06,123 - INFO - allennlp.training.callbacks.console_logger -            Training |  Validation\n\
                 2026-01-02 10:02:06,123 - INFO - allennlp.training.callbacks.console_logger - accuracy |     0.500  |     0.625\n\
                 2026-01-02 10:02:06,123 - INFO - allennlp.training.callbacks.console_logger - gpu_MB   |     512.5  |       N/A\n",
        metrics: &[
            "20: accuracy=0.5 loss=0.75",
            "20: train_accuracy=0.5 val_accuracy=0.625",
            "20: train_gpu_mb=512.5",
            "20: val_accuracy=0.625 val_loss=0.6875",
        ],
        settings: NONE,
    },
    Program {
        name: "detectron2's table of an evaluation, and tables of results without a place",
        prints: "[01/02 10:02:03 d2.utils.events]:  eta: 0:01:30  iter: 19  total_loss: 1.5\n\
                 [01/02 10:02:04 d2.evaluation.coco_evaluation]: Evaluation results for segm: \n\
                 |   AP   |  AP50  |  APs  |\n|:------:|:------:|:-----:|\n| 29.500 | 53.250 | 7.750 |\n\
                 | Metric   | Value  |\n+----------+--------+\n| macro_f1 | 0.8125 |\n+----------+--------+\n",
        metrics: &[
            "19: total_loss=1.5",
            "19: segm/ap=29.5 segm/ap50=53.25 segm/aps=7.75",
            "19: macro_f1=0.8125",
        ],
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
        name: "Acme, whose names have several words between bars",
        prints: "[Learner] Critic Loss = 0.500 | Steps = 100 | Walltime = 12.5\n[Evaluator] Episode Return = 12.250 | Steps = 100\n",
        metrics: &["100: critic_loss=0.5 walltime=12.5", "100: episode_return=12.25"],
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

/// What each of the programs prints.
pub(super) fn prints() -> impl Iterator<Item = &'static str> {
    PROGRAMS.iter().map(|program| program.prints)
}

fn read(prints: &str) -> (Vec<String>, Vec<String>) {
    let (mut reader, mut found) = (PrintedReader::default(), Vec::new());
    reader.push(Printed::Stdout, prints.as_bytes(), |metrics| found.push(metrics.clone()));
    reader.finish(|metrics| found.push(metrics.clone()));
    let shown = |metrics: &PrintedMetrics| {
        let values: Vec<String> =
            metrics.values.iter().map(|(name, value)| format!("{name}={}", unmarked(*value))).collect();
        format!("{}: {}", metrics.step, values.join(" "))
    };
    let settings = reader.take_settings().into_iter().map(|(name, value)| format!("{name}={value}"));
    (found.iter().map(shown).collect(), settings.collect())
}

/// Proves for each program which metrics are read, at which step, and which settings: totals, places in source files,
/// clocks and echoed settings are no metrics.
#[test]
fn programs_are_understood() {
    let mut wrong = Vec::new();
    for program in PROGRAMS {
        let (metrics, settings) = read(program.prints);
        if metrics != program.metrics || settings != program.settings {
            wrong.push(format!("{}:\n  {metrics:#?}\n  {settings:?}", program.name));
        }
    }
    assert!(PROGRAMS.len() >= 25);
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}
