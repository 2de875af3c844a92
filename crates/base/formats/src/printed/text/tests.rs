use super::*;

type Read = (Option<u64>, Option<u64>, Option<(u64, u64)>, Vec<(String, f64)>);

fn read(line: &str) -> Option<Read> {
    let named = read_text(line, None)?;
    Some((named.step, named.epoch, named.position.zip(named.total), named.values))
}

fn values(values: &[(&str, f64)]) -> Vec<(String, f64)> {
    values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
}

/// Proves the forms that training scripts print, each with its step and the names that mean the same.
#[test]
fn lines_of_training_scripts() {
    let cases: [(&str, Read); 12] = [
        (
            "step 10: train loss 4.1, val loss 4.2",
            (Some(10), None, None, values(&[("train_loss", 4.1), ("val_loss", 4.2)])),
        ),
        (
            "iter 10: loss 4.1, time 23.40ms, mfu 3.5%",
            (Some(10), None, None, values(&[("loss", 4.1), ("mfu", 3.5)])),
        ),
        (
            "2026-11-22 04:34:42,036 [INFO] root: step=101 loss=1.99 lr=1.00e-04 tokens_per_second=12",
            (
                Some(101),
                None,
                None,
                values(&[("loss", 1.99), ("learning_rate", 1e-4), ("tokens_per_second", 12.0)]),
            ),
        ),
        (
            "Epoch [1/5], Step [100/600], Loss: 0.35",
            (None, Some(1), Some((100, 600)), values(&[("loss", 0.35)])),
        ),
        (
            "Train Epoch: 2 [640/60000 (1%)]\tLoss: 1.5",
            (None, Some(2), Some((640, 60_000)), values(&[("loss", 1.5)])),
        ),
        (
            "| epoch 3 | 200/2983 batches | lr 5.00 | ms/batch 12.34 | loss 6.72 | ppl 828.95",
            (
                None,
                Some(3),
                Some((200, 2983)),
                values(&[("learning_rate", 5.0), ("loss", 6.72), ("ppl", 828.95)]),
            ),
        ),
        (
            "Test set: Average loss: 0.05, Accuracy: 9834/10000 (98%)",
            (None, None, None, values(&[("test_average_loss", 0.05), ("test_accuracy", 0.9834)])),
        ),
        ("Epoch: 4  Loss: inf", (None, Some(4), None, values(&[("loss", f64::INFINITY)]))),
        ("loss=0.5, grad norm: 2.0.", (None, None, None, values(&[("loss", 0.5), ("grad_norm", 2.0)]))),
        (
            "[5]\ttraining's l2: 1\tvalid_1's mse: 0.3",
            (Some(5), None, None, values(&[("training_l2", 1.0), ("valid_1_mse", 0.3)])),
        ),
        (
            "[100]\ttrain-logloss:0.2\teval-logloss:0.3",
            (Some(100), None, None, values(&[("train-logloss", 0.2), ("eval-logloss", 0.3)])),
        ),
        ("Validation | accuracy = 91.5%", (None, None, None, values(&[("val_accuracy", 0.915)]))),
    ];
    for (line, expected) in cases {
        assert_eq!(read(line), Some(expected), "{line}");
    }
}

/// Proves that other output of scripts is not a metric.
#[test]
fn lines_about_something_else() {
    for line in [
        "listening on port=8080 pid=123",
        "number of parameters: 0.12M",
        "done in 12.3s, peak memory 1024 MB",
        "Total params: 5",
        "Epoch 1: val_loss improved from inf to 0.78, saving model",
        "2026-11-22 04:34:42,036 INFO started worker 3",
        "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 79.15 GiB total)",
        "  File \"train.py\", line 12, in <module>",
        "== 1/5 ==",
        "",
    ] {
        assert_eq!(read(line), None, "{line}");
    }
}

/// The names and values of a line.
fn named_values(line: &str) -> Vec<(String, f64)> {
    read_text(line, None).map(|named| named.values).unwrap_or_default()
}

/// Proves that a word that says which of several values this is belongs to the name, also before `of` and `=`, and that
/// a norm and a score have the word before them.
#[test]
fn statistics_belong_to_names() {
    for (line, expected) in [
        (
            "step 5. Mean Reward: 1.5. Std of Reward: 0.25. Training.",
            vec![("mean_reward", 1.5), ("std_of_reward", 0.25)],
        ),
        ("Minimum validation bpb: 0.75", vec![("minimum_validation_bpb", 0.75)]),
        ("Iteration 5: error = 2.5, gradient norm = 0.25", vec![("error", 2.5), ("gradient_norm", 0.25)]),
        ("Average reward score: 0.25", vec![("average_reward_score", 0.25)]),
        ("Feature norm: 0.25", vec![("feature_norm", 0.25)]),
        ("Model 0 test rmse = 0.5", vec![("test_rmse", 0.5)]),
        ("the score: 0.5", vec![("score", 0.5)]),
        (
            "Epoch: 1 Train Loss: 0.5 Vali Loss: 0.75 Test Loss: 0.25",
            vec![("train_loss", 0.5), ("val_loss", 0.75), ("test_loss", 0.25)],
        ),
    ] {
        assert_eq!(named_values(line), values(&expected), "{line}");
    }
}

/// Proves that a loss alone beside losses of parts of a model has the word before it, and that one beside a loss of a
/// part of the data has not.
#[test]
fn a_lone_loss_has_its_word() {
    let of_parts = [("actor_loss", 0.5), ("unsupervised_loss", 0.25)];
    assert_eq!(named_values("step 1 | Actor Loss: 0.5 | Unsupervised Loss: 0.25"), values(&of_parts));
    assert_eq!(
        named_values("step 1 | Actor Loss: 0.5 | current loss: 0.25"),
        values(&[("actor_loss", 0.5), ("loss", 0.25)])
    );
    assert_eq!(
        named_values("step 1 lm loss: 2, train loss 3"),
        values(&[("loss", 2.0), ("train_loss", 3.0)])
    );
}

/// Proves that what was best so far is named so and is at no other place than the line, and that the best of a measure has its name.
#[test]
fn best_values_are_named_so() {
    for (line, expected) in [
        (
            "> Epoch 3: took 1.5s | Best so far: epoch 2\ttrain_loss: 0.5 val_acc: 0.75",
            vec![("best_train_loss", 0.5), ("best_val_acc", 0.75)],
        ),
        ("End. Best Iteration 4:  HR = 0.5, NDCG = 0.25.", vec![("best_hr", 0.5), ("best_ndcg", 0.25)]),
        (" # psnr: 28.5\tBest: 29.5 @ 5000 iter", vec![("psnr", 28.5), ("best_psnr", 29.5)]),
        ("best_accuracy: 0.5", vec![("best_accuracy", 0.5)]),
    ] {
        assert_eq!(named_values(line), values(&expected), "{line}");
    }
    let named = read_text("> Epoch 3: took 1.5s | Best so far: epoch 2 loss: 0.5", None).unwrap();
    assert_eq!((named.epoch, named.step), (Some(3), None));
    assert_eq!(read_text("Best so far: epoch 2 loss: 0.5", None).unwrap().epoch, None);
}

/// Proves that a measure is read in a sentence that states it and in brackets of one value, and that a sentence about a
/// change, a whole number or a NaN is none.
#[test]
fn measures_that_are_stated() {
    for (line, expected) in [
        ("Updating learning rate to 5e-05", vec![("learning_rate", 5e-5)]),
        ("Epoch[0] Learning rate is 0.001", vec![("learning_rate", 0.001)]),
        ("Test accuracy is 91.5%", vec![("test_accuracy", 0.915)]),
        ("[epoch: 0, iter: 5, lr:(2.5e-04,)] l_pix: 0.5", vec![("learning_rate", 2.5e-4), ("l_pix", 0.5)]),
        ("loss is 0 for 3 samples", vec![]),
        ("Loss is nan, stopping training", vec![]),
        ("accuracy improved from 0.5 to 0.75", vec![]),
        ("threshold is 0.5", vec![]),
    ] {
        assert_eq!(named_values(line), values(&expected), "{line}");
    }
}

/// Proves that a name and a value alone between two bars count beside a measure, between commas only a name with a sign
/// in it, and never a duration.
#[test]
fn values_beside_a_measure() {
    for (line, expected) in [
        ("Train | Epoch 1 | 5/20 | 1.5 it/sec | ce 4.5 | ppl 0.25", vec![("ce", 4.5), ("ppl", 0.25)]),
        (
            "Iter 5: Train loss 0.5, It/sec 0.75, kept 1.5, Peak mem 14.5 GB",
            vec![("train_loss", 0.5), ("it/sec", 0.75)],
        ),
        ("step 5 | loss 0.5 | ms/batch 12.5", vec![("loss", 0.5)]),
        ("step 5 | ce 0.5 | took 0.25", vec![]),
    ] {
        assert_eq!(named_values(line), values(&expected), "{line}");
    }
}

/// Proves that the highest of three numbers behind the word for a step is the step, and that a list of counts is none.
#[test]
fn steps_of_three_numbers() {
    let line = "At iteration 92/100/101, mean rms=4.5%, delta=32.5%, BCER train=83.5%";
    let expected = values(&[("mean_rms", 4.5), ("delta", 32.5), ("bcer_train", 83.5)]);
    assert_eq!(read(line), Some((Some(101), None, None, expected)));
    assert_eq!(
        read("step 5 loss 0.5 bsz: 3500/3250/64"),
        Some((Some(5), None, None, values(&[("loss", 0.5)])))
    );
}

/// Proves that a heading that names an evaluation has the place at its end, that scores behind a compound name have it,
/// and that the names of parts of the data count before a place.
#[test]
fn headings_of_evaluations() {
    assert_eq!(
        read("Evaluating the model on the dev set after epoch 2:"),
        Some((None, Some(2), None, vec![]))
    );
    assert_eq!(read("saved the weights after epoch 2:"), None);
    let scores = [("dot-product_pearson", 0.5), ("dot-product_spearman", 0.75)];
    assert_eq!(named_values("Dot-Product :\tPearson: 0.5\tSpearman: 0.75"), values(&scores));
    assert_eq!(named_values("my-model: loss: 0.5 acc: 0.75"), values(&[("loss", 0.5), ("acc", 0.75)]));
    assert_eq!(
        read("Valid MR at step 200: 150.25"),
        Some((Some(200), None, None, values(&[("val_mr", 150.25)])))
    );
    assert_eq!(named_values("Training started at step 100: 5 workers"), []);
    assert_eq!(named_values("Train Summary | Epoch 1 | ppl=0.5"), values(&[("train_ppl", 0.5)]));
}

/// Proves that a number of steps of an episode is not the step, and that a count which begins the line is.
#[test]
fn steps_of_an_episode_are_no_step() {
    let line = "  400/50000: episode: 2, episode steps: 200, steps per second: 390, mean reward: 0.25 [0.000, 1.000], loss: 0.5";
    let expected = values(&[("mean_reward", 0.25), ("loss", 0.5)]);
    assert_eq!(read(line), Some((None, None, Some((400, 50_000)), expected)));
}

/// Proves that names and values that are joined by a slash are two, and that a line of names with numbers and a step is a place.
#[test]
fn joined_names_and_lines_of_pairs() {
    let line = " Last 10 training episodes: mean/median reward 1.5/1.0, min/max reward 0.5/2.5";
    let expected = [("mean_reward", 1.5), ("median_reward", 1.0), ("min_reward", 0.5), ("max_reward", 2.5)];
    assert_eq!(named_values(line), values(&expected));
    assert_eq!(
        named_values("step 5 train/val loss: 0.5/0.75"),
        values(&[("train_loss", 0.5), ("val_loss", 0.75)])
    );
    assert_eq!(named_values("step 5 loss: 3/4"), values(&[("loss", 0.75)]));
    assert_eq!(read("Updates 10, num timesteps 880, FPS 520"), Some((Some(880), None, None, vec![])));
    assert_eq!(read("step 5, found 3 files"), None);
}

/// Proves that a measure for each of something, at a rank and of a search are read, and that the rank of a process is none.
#[test]
fn measures_per_something_and_at_ranks() {
    for (line, expected) in [
        ("Average return per training episode: 20.5", vec![("average_return_per_training_episode", 20.5)]),
        ("Average training steps per second: 120.5", vec![]),
        ("precision @ 1 = 0.75", vec![("precision@1", 0.75)]),
        ("CMC curve, Rank-1  :42.5%", vec![("rank-1", 0.425)]),
        ("Rank-1: 3", vec![]),
        ("rank-0: 0.5", vec![]),
    ] {
        assert_eq!(named_values(line), values(&expected), "{line}");
    }
}

/// Proves that values of any names count beside a count of steps where two have decimals, and that a clock may precede
/// the part of the data.
#[test]
fn lines_that_count_steps() {
    let expected = values(&[("d/latent_real", 0.25), ("g/lambda_ds", 0.75)]);
    let line = "Elapsed time [0:00:10], Iteration [10/100000], D/latent_real: [0.25] G/lambda_ds: [0.75]";
    assert_eq!(read(line), Some((None, None, Some((10, 100_000)), expected)));
    assert_eq!(read("Step 1/5 : copied=3.5"), None);
    assert_eq!(read("Downloading 10/100, speed: 0.5, left: 0.25"), None);
    assert_eq!(
        read("[   3] obj=1234.5 act=12"),
        Some((Some(3), None, None, values(&[("obj", 1234.5), ("act", 12.0)])))
    );
    assert_eq!(read("[12345] queue: 0.5"), None);
    assert_eq!(named_values("10:10:59 validation metrics:accuracy:0.5"), values(&[("val_accuracy", 0.5)]));
}

/// Proves that a heading of PyTorch's tutorial on style transfer has the step, and that the number of a run among others has not.
#[test]
fn runs_in_brackets() {
    assert_eq!(read("run [50]:"), Some((Some(50), None, None, vec![])));
    assert_eq!(read("run [50]: done"), None);
}

/// Proves that a call before a sign is a name, `log` before it too, and that units, counts, classes and other words are none.
#[test]
fn names_that_are_calls() {
    for (line, expected) in [
        ("step 1 loss: 0.5 D(X): 0.25 D(G(Z)): 0.125", vec![("loss", 0.5), ("d_x", 0.25), ("d_g_z", 0.125)]),
        (
            "====> Test Epoch: 3\tlog p(x,y): -1.5\tlog p(x): -2.5",
            vec![("test_log_p_x_y", -1.5), ("test_log_p_x", -2.5)],
        ),
        ("step 1 KL(q||p)=0.125 f(x): nan", vec![("kl_q_p", 0.125), ("f_x", f64::NAN)]),
        ("step 1 loss 0.5 time(s): 10.5 mem(GB): 3.5 it(it/s): 1.5", vec![("loss", 0.5)]),
        ("step 1 loss 0.5 len(data): 512 -log p(x): 2.5", vec![("loss", 0.5)]),
        ("step 1 loss (valid): 0.5", vec![("val_loss", 0.5)]),
    ] {
        let found = named_values(line);
        let is_same = |((name, value), (known, expected)): (&(String, f64), &(&str, f64))| {
            name == known && (value == expected || value.is_nan() && expected.is_nan())
        };
        assert!(
            found.len() == expected.len() && found.iter().zip(&expected).all(is_same),
            "{line}: {found:?}"
        );
    }
    assert_eq!(read("D(x): 0.5"), None);
}

/// Proves that a measure in the letters of two cases of a name is one, which has the usual name, and that a class of a model is none.
#[test]
fn measures_in_letters_of_two_cases() {
    for (line, expected) in [
        ("Epoch: 1 learningRate 0.5 train loss 0.25", vec![("learning_rate", 0.5), ("train_loss", 0.25)]),
        ("step 1 TrainLoss: 0.5 valAcc 0.75", vec![("train_loss", 0.5), ("val_acc", 0.75)]),
        ("step 1 GradNorm 1.5 MeanReward=200", vec![("grad_norm", 1.5), ("mean_reward", 200.0)]),
        ("step 1 dLoss: 0.5 mAcc: 0.75", vec![("d_loss", 0.5), ("macc", 0.75)]),
        ("step 1 loss 0.5 (1): LayerNorm(64.5) GroupNorm 32", vec![("loss", 0.5)]),
    ] {
        assert_eq!(named_values(line), values(&expected), "{line}");
    }
    assert_eq!(read("BatchNorm2d(512, momentum=0.1)"), None);
}

/// Proves that what a fraction is, as it is written behind it, is the value of any name, and that progress and a
/// percentage of any name are none.
#[test]
fn results_of_fractions() {
    assert_eq!(named_values("HellaSwag: 45/60 = 0.7500"), values(&[("hellaswag", 0.75)]));
    assert_eq!(named_values("Accuracy: 45/60 = 75.0%"), values(&[("accuracy", 0.75)]));
    for line in ["Batch: 45/60 = 0.75", "Disk: 45/60 = 75%", "progress: 45/60 = 0.75", "A: 45/60 = 7"] {
        assert!(read(line).is_none_or(|(.., values)| values.is_empty()), "{line}");
    }
}

/// Proves that an evaluation on the training set is named so, and that the set at the end of a heading is the one that was evaluated.
#[test]
fn the_part_that_is_evaluated() {
    for (line, expected) in [
        ("[ITER 5] Evaluating train: L1 0.5 PSNR 20.5", vec![("train_l1", 0.5), ("train_psnr", 20.5)]),
        ("evaluation on the train set: loss: 0.5", vec![("train_loss", 0.5)]),
        ("evaluation on test data: loss: 0.5", vec![("test_loss", 0.5)]),
        ("validation loss at iteration 5 on test set | lm loss PPL: 1.5 |", vec![("test_ppl", 1.5)]),
        ("Train: loss 0.5", vec![("loss", 0.5)]),
    ] {
        assert_eq!(named_values(line), values(&expected), "{line}");
    }
}

/// Proves that the word before the loss is of its name where bars separate fields, unless it says when or of what part
/// of the data it was measured.
#[test]
fn fields_name_their_losses() {
    for (line, name) in [
        ("step 1 | lm loss: 0.5 | grad norm: 1.5", "lm_loss"),
        ("step 1 | batch loss: 0.5 | grad norm: 1.5", "loss"),
        ("step 1 | current loss: 0.5 | grad norm: 1.5", "loss"),
        ("step 1 | training loss: 0.5 | grad norm: 1.5", "training_loss"),
        ("step 1, lm loss: 0.5, grad norm: 1.5", "loss"),
    ] {
        assert_eq!(named_values(line), values(&[(name, 0.5), ("grad_norm", 1.5)]), "{line}");
    }
}
