//! Where candidates lie: a Latin hypercube, steps around the best, and members that lie far apart.
//!
//! A candidate is a place in the unit cube, an axis for each parameter. All draws come from the file's seed.

/// A candidate's place, 0 to 1 on each axis.
pub type Place = Vec<f64>;

/// Places of a round of refinement, of each of the best.
const STEPS: usize = 4;

/// SplitMix64 (Steele et al., OOPSLA 2014).
pub struct Draws(u64);

impl Draws {
    /// The sequence of `seed`.
    pub fn new(seed: u64) -> Draws {
        Draws(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let value = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ value >> 31
    }

    /// A number in [0, 1).
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// `count` places of `axes` axes: on each axis one in each of `count` equal parts (McKay et al., 1979).
    pub fn hypercube(&mut self, count: usize, axes: usize) -> Vec<Place> {
        let mut places = vec![vec![0.0; axes]; count];
        for axis in 0..axes {
            let mut parts: Vec<usize> = (0..count).collect();
            for last in (1..count).rev() {
                parts.swap(last, (self.unit() * (last + 1) as f64) as usize);
            }
            for (place, part) in places.iter_mut().zip(parts) {
                place[axis] = (part as f64 + self.unit()) / count as f64;
            }
        }
        places
    }

    /// Places around each of `best`, at most `reach` away on each axis, within the cube.
    pub fn around(&mut self, best: &[Place], reach: f64) -> Vec<Place> {
        let mut places = Vec::new();
        for place in best {
            for _ in 0..STEPS {
                let step = |&at: &f64| (at + (2.0 * self.unit() - 1.0) * reach).clamp(0.0, 1.0);
                places.push(place.iter().map(step).collect());
            }
        }
        places
    }
}

/// The numbers of up to `count` of `places`, which stand best first: the first one, and then each time the one that is
/// farthest from those chosen.
pub fn far_apart(places: &[Place], count: usize) -> Vec<usize> {
    let mut chosen: Vec<usize> = (0..places.len().min(1)).collect();
    while chosen.len() < count.min(places.len()) {
        let nearest = |number: usize| {
            let distances = chosen.iter().map(|&other| distance(&places[number], &places[other]));
            distances.fold(f64::INFINITY, f64::min)
        };
        let rest = (0..places.len()).filter(|number| !chosen.contains(number));
        // Of equally far ones the best.
        let next = rest.rev().max_by(|&a, &b| nearest(a).total_cmp(&nearest(b)));
        chosen.extend(next);
    }
    chosen
}

fn distance(a: &Place, b: &Place) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hypercube_has_one_place_in_each_part_of_each_axis() {
        let places = Draws::new(7).hypercube(10, 3);
        for axis in 0..3 {
            let mut parts: Vec<usize> = places.iter().map(|place| (place[axis] * 10.0) as usize).collect();
            parts.sort_unstable();
            assert_eq!(parts, (0..10).collect::<Vec<_>>());
        }
        assert_eq!(Draws::new(7).hypercube(10, 3), places);
        assert_ne!(Draws::new(8).hypercube(10, 3), places);
    }

    #[test]
    fn steps_stay_near_and_within_the_cube() {
        for place in Draws::new(1).around(&[vec![0.0, 0.5]], 0.1) {
            assert!((0.0..=0.1).contains(&place[0]) && (0.4..=0.6).contains(&place[1]), "{place:?}");
        }
    }

    #[test]
    fn members_lie_far_apart() {
        let places = [0.5, 0.51, 0.0, 0.9].map(|at| vec![at]);
        assert_eq!(far_apart(&places, 3), [0, 2, 3]);
        assert_eq!(far_apart(&places, 9).len(), 4);
        assert_eq!(far_apart(&[], 3), [0; 0]);
    }
}
