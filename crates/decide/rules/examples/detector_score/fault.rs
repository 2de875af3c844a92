//! The faults: each is one change to a healthy run, from a step on. Most are of the classes that TrainCheck's silent
//! errors and SageMaker Debugger's rules describe.

use trackway_core::detect::Detector as D;

macro_rules! faults {
    ($($fault:ident $words:literal $when:ident $numeric:literal [$($detector:ident)+];)+) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Fault { $($fault),+ }

        pub const FAULTS: &[Fault] = &[$(Fault::$fault),+];

        impl Fault {
            /// A description of the fault.
            pub const fn words(self) -> &'static str {
                match self { $(Self::$fault => $words),+ }
            }

            /// Whether it is there from the first step on.
            pub const fn is_there_from_start(self) -> bool {
                match self { $(Self::$fault => matches!(FaultTime::$when, FaultTime::Start)),+ }
            }

            /// Whether it breaks numbers at once, so that it should be detected within steps.
            pub const fn numeric(self) -> bool {
                match self { $(Self::$fault => $numeric),+ }
            }

            /// The detectors that may name it; any of them counts, the first is its own.
            pub const fn expected(self) -> &'static [D] {
                match self { $(Self::$fault => &[$(D::$detector),+]),+ }
            }
        }
    };
}

enum FaultTime {
    Start,
    Middle,
}

faults! {
    RateTimes100 "learning rate × 100" Middle true [LearningRate GradientExplosion LossSpike LossShift NonFinite];
    RateTooHighFromStart "learning rate × 10,000 from the start" Start true [NonFinite GradientExplosion LossSpike LossShift LearningRate Plateau GradientVanishing];
    RateZero "learning rate 0" Middle false [LearningRate];
    NanInBatch "NaN in a batch" Middle true [NonFinite];
    InfInLabel "infinite label, or input" Middle true [NonFinite];
    WildBatch "one batch of huge values" Middle true [LossSpike GradientExplosion NonFinite];
    ExplodingGradient "gradient × 10,000" Middle true [GradientExplosion NonFinite];
    VanishingGradient "gradient × 1e-9" Middle false [GradientVanishing LearningRate];
    FrozenLayer "a layer is frozen" Middle false [GradientVanishing];
    ShuffledLabels "labels are shuffled" Middle true [LossSpike LossShift];
    SameBatch "the same batch again and again" Middle false [DeadInput];
    SameBatchFromStart "the same batch from the start" Start false [DeadInput];
    ZeroInput "inputs are all zero" Middle true [LossSpike LossShift DeadInput GradientVanishing];
    LoaderSleeps "the loader takes as long as the step" Middle false [DataStarvation ThroughputDrop];
    Throttled "steps take twice as long" Middle false [ThroughputDrop];
    RankSlow "one rank takes 1.6 times as long" Middle false [Straggler];
    RankParts "a rank leaves out the all-reduce" Middle true [RankDivergence];
    RankCorrupted "weights of one rank are damaged" Middle true [RankDivergence LossSpike GradientExplosion LossShift];
    MemoryLeak "activations are kept" Middle false [MemoryCreep];
    Hang "a step never ends" Middle false [Hang];
    LossScaleCollapse "every scaled gradient overflows" Middle false [LossScaleCollapse NonFinite];
    NoZeroGrad "gradients are not set to zero" Start false [GradientExplosion LossSpike LossShift NonFinite LearningRate Plateau];
    NoZeroGradLater "gradients are no longer set to zero" Middle true [GradientExplosion LossSpike LossShift NonFinite LearningRate];
    WeightsCorrupted "bits of weights are flipped" Middle true [LossSpike GradientExplosion NonFinite LossShift LearningRate];
    NotRestored "resume begins with a new model" Middle true [LossSpike LossShift LearningRate];
    OptimizerLost "resume without the optimizer's state" Middle false [LearningRate LossSpike LossShift];
    ValidationNotNormalised "validation data is not normalised" Start false [ValidationDivergence];
    Overfit "forty rows to learn by heart" Start false [ValidationDivergence];
    DeadUnits "units of a layer are dead" Middle true [LossSpike LossShift GradientVanishing];
    WrongNormalisation "inputs are no longer normalised (× 50)" Middle true [LossSpike LossShift GradientExplosion];
    GradientAscent "gradients have the wrong sign" Middle false [LossSpike LossShift GradientExplosion NonFinite];
    OptimizerWithoutParameters "the optimizer has no parameters" Start false [LearningRate Plateau];
    OptimizerStops "the optimizer no longer steps" Middle false [LearningRate];
    DropoutEverything "dropout leaves out 90 %" Middle true [LossSpike LossShift];
    WeightDecay "weight decay of 20 a step" Middle true [LossSpike LossShift LearningRate GradientVanishing];
    ZeroInit "weights begin at zero" Start false [GradientVanishing Plateau];
}
