//! Images and what is made of them.

use super::{NONE, Program};

pub(super) const PROGRAMS: &[Program] = &[
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
        name: "Gaussian splatting",
        prints: "[ITER 7000] Evaluating test: L1 0.0625 PSNR 23.125 [31/08 22:43:31]\n\
                 [ITER 7000] Evaluating train: L1 0.03125 PSNR 24.25 [31/08 22:43:33]\n",
        metrics: &["7000: test_l1=0.0625 test_psnr=23.125", "7000: train_l1=0.03125 train_psnr=24.25"],
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
        name: "Darknet",
        prints: " 1: 1234.500000, 1234.500000 avg loss, 0.000000 rate, 1.230000 seconds, 64 images, 100.5 hours left\n\
                 \x202: 1134.500000, 1224.500000 avg loss, 0.000000 rate, 1.230000 seconds, 128 images, 100.4 hours left\n",
        metrics: &["1: loss=1234.5 avg_loss=1234.5 rate=0", "2: loss=1134.5 avg_loss=1224.5 rate=0"],
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
        name: "YOLACT",
        prints: "[  0]       0 || B: 4.500 | C: 12.250 | T: 23.125 || ETA: 1 day, 2:03:04 || timer: 0.500\n\
                 [  0]      10 || B: 4.250 | C: 12.125 | T: 22.750 || ETA: 1 day, 2:03:04 || timer: 0.500\n",
        metrics: &["0: b=4.5 c=12.25 t=23.125 timer=0.5", "10: b=4.25 c=12.125 t=22.75 timer=0.5"],
        settings: NONE,
    },
    Program {
        name: "TensorFlow's object detection",
        prints: "INFO:tensorflow:Step 100 per-step time 0.512s\n\
                 INFO:tensorflow:{'Loss/classification_loss': 0.5,\n\
                 \x20'Loss/total_loss': 1.25,\n\
                 \x20'learning_rate': 0.0625}\n",
        metrics: &["100: Loss/classification_loss=0.5 Loss/total_loss=1.25 learning_rate=0.0625"],
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
        name: "Catalyst, whose lines end their head with the part of the data",
        prints: "1/2 * Epoch 1 (train): loss=0.75 | accuracy01=0.5\n1/2 * Epoch 1 (valid): loss=0.5 | accuracy01=0.625\n",
        metrics: &["1: loss=0.75 accuracy01=0.5", "1: val_loss=0.5 val_accuracy01=0.625"],
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
];
