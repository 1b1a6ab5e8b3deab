//! The rank test for times, which tells whether one version is slower than another or the difference is chance.

/// A difference in time is believed below this probability of chance.
pub(crate) const SIGNIFICANT: f64 = 0.01;

/// The value in the middle; `None` of no values.
pub(crate) fn median(values: &[u64]) -> Option<u64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let middle = sorted.len() / 2;
    let high = *sorted.get(middle)?;
    Some(if sorted.len().is_multiple_of(2) {
        u64::midpoint(sorted[middle - 1], high)
    } else {
        high
    })
}

/// The probability that samples as far apart as these, or farther, come from one distribution: the two-sided
/// test of Mann and Whitney, exact where no two values are equal and samples are small, else by the normal
/// distribution with corrections for ties and continuity. 1 for an empty sample.
///
/// Source: Mann and Whitney, *On a test of whether one of two random variables is stochastically larger than
/// the other*, 1947.
#[must_use]
pub(crate) fn p_value(a: &[u64], b: &[u64]) -> f64 {
    if a.is_empty() || b.is_empty() {
        return 1.0;
    }
    let (n, m) = (a.len(), b.len());
    let u = u_statistic(a, b);
    let ties = ties(a, b);
    let low = u.min((n * m) as f64 - u);
    if ties == 0.0 && n * m <= EXACT {
        return exact(n, m, low as usize).min(1.0);
    }
    let (n, m) = (n as f64, m as f64);
    let all = n + m;
    let variance = n * m / 12.0 * (all + 1.0 - ties / (all * (all - 1.0)));
    if variance <= 0.0 {
        return 1.0;
    }
    let z = ((n * m / 2.0 - low - 0.5) / variance.sqrt()).max(0.0);
    (2.0 * upper_tail(z)).min(1.0)
}

/// Products of sizes up to which the test is exact.
const EXACT: usize = 400;

/// In how many pairs `a` is larger; equal ones count a half.
fn u_statistic(a: &[u64], b: &[u64]) -> f64 {
    let of = |x: &u64, y: &u64| match x.cmp(y) {
        std::cmp::Ordering::Greater => 1.0,
        std::cmp::Ordering::Equal => 0.5,
        std::cmp::Ordering::Less => 0.0,
    };
    a.iter().flat_map(|x| b.iter().map(move |y| of(x, y))).sum()
}

/// The sum of `t³ - t` over groups of `t` equal values.
fn ties(a: &[u64], b: &[u64]) -> f64 {
    let mut all: Vec<u64> = a.iter().chain(b).copied().collect();
    all.sort_unstable();
    let groups = all.chunk_by(|x, y| x == y).map(|group| group.len() as f64);
    groups.map(|t| t * t * t - t).sum()
}

/// Twice the part of all orders of `n` and `m` values with a statistic of at most `u`.
fn exact(n: usize, m: usize, u: usize) -> f64 {
    // `ways[i][s]`: orders of i values of the one and those of the other so far with the statistic s.
    let mut ways = vec![vec![0.0f64; n * m + 1]; n + 1];
    for row in &mut ways {
        row[0] = 1.0;
    }
    for j in 1..=m {
        for i in 1..=n {
            for s in (j..=i * j).rev() {
                ways[i][s] += ways[i - 1][s - j];
            }
            // Statistics below j are those of before.
        }
    }
    let total: f64 = ways[n].iter().sum();
    let below: f64 = ways[n][..=u].iter().sum();
    2.0 * below / total
}

/// The part of a normal distribution above `z`. Source: Abramowitz and Stegun, 7.1.26; off by 1.5e-7 at most.
fn upper_tail(z: f64) -> f64 {
    let x = z / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * x);
    let series = t
        * (0.254_829_592
            + t * (-0.284_496_736
                + t * (1.421_413_741 + t * (-1.453_152_027 + t * 1.061_405_429))));
    0.5 * series * (-x * x).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_against_five_apart_is_one_in_126() {
        // Of the 252 orders of five and five, two are as far apart as this.
        let p = p_value(&[1, 2, 3, 4, 5], &[6, 7, 8, 9, 10]);
        assert!((p - 2.0 / 252.0).abs() < 1e-12, "{p}");
    }

    #[test]
    fn values_of_the_literature() {
        for (a, b, expect) in [
            // One exchange: 4 of 252.
            (vec![1, 2, 3, 4, 6], vec![5, 7, 8, 9, 10], 4.0 / 252.0),
            (vec![1, 2], vec![3, 4], 2.0 / 6.0),
            (vec![1, 4], vec![2, 3], 1.0),
            (vec![], vec![1], 1.0),
            (vec![7, 7, 7], vec![7, 7], 1.0),
        ] {
            let p = p_value(&a, &b);
            assert!((p - expect).abs() < 1e-12, "{a:?} {b:?}: {p}");
        }
    }

    #[test]
    fn ties_and_many_values_go_by_the_normal_distribution() {
        let a: Vec<u64> = (0..30).collect();
        let b: Vec<u64> = (20..50).collect();
        // U = 50 of 900: z = 5.906.
        let p = p_value(&a, &b);
        assert!((1e-9..1e-7).contains(&p), "{p}");
        assert!((p_value(&b, &a) - p).abs() < 1e-15);
    }

    proptest::proptest! {
        #[test]
        fn it_is_a_probability_and_the_same_both_ways(
            a in proptest::collection::vec(0u64..50, 0..25),
            b in proptest::collection::vec(0u64..50, 0..25),
        ) {
            let p = p_value(&a, &b);
            proptest::prop_assert!((0.0..=1.0).contains(&p));
            proptest::prop_assert!((p - p_value(&b, &a)).abs() < 1e-9);
        }
    }
}
