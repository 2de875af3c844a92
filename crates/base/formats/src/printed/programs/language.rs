//! Language and speech.

use super::{NONE, Program};

pub(super) const PROGRAMS: &[Program] = &[
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
        name: "torchtitan",
        prints: "[rank0]:2026-01-02 10:02:03,123 - root - INFO - Training starts at step 1, with local batch size 8, total steps 1,000 (warmup 200)\n\
                 [rank0]:2026-01-02 10:02:13,123 - root - INFO - \x1b[31mstep: 10  \x1b[32mloss:  7.2  \x1b[33mmemory: 13.50GiB(14.20%)  \x1b[34mtps: 5,123  \x1b[36mtflops: 30.10  \x1b[35mmfu: 9.65%\x1b[39m\n",
        metrics: &["10: loss=7.2 tps=5123 tflops=30.1 mfu=9.65"],
        settings: &["total_steps=1000"],
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
        name: "Coqui's evaluation",
        prints: " | > Torch seed: 54321\n\x1b[1m   --> STEP: 24/100 -- GLOBAL_STEP: 24\x1b[0m\n     | > loss: 1.25000  (1.30000)\n     | > log_mle: -0.5  (0.75)\n\n\
                 \x1b[1m > EVALUATION \x1b[0m\n\n  \x1b[1m--> EVAL PERFORMANCE\x1b[0m\n     | > avg_loss:\x1b[92m 2.5 \x1b[0m(-0.25)\n     | > avg_log_mle:\x1b[92m 0.125 \x1b[0m(+0.5)\n     | > files: 3\n\
                 \x20> other: 0.5\n     | > again: 0.5\n",
        metrics: &["24: loss=1.25", "24: log_mle=-0.5", "24: avg_loss=2.5", "24: avg_log_mle=0.125"],
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
];
