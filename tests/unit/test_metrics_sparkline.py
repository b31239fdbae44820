import pytest

from surefoot.metrics.sparkline import Trend, bar, sparkline


def test_sparkline_spans_the_smallest_and_the_largest_value():
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7]) == "▁▂▃▄▅▆▇█"
    assert sparkline([5.0, 5.0]) == "▁▁"
    assert sparkline([]) == ""


def test_bar_fills_its_share_to_an_eighth_of_a_character():
    assert bar(1.0, 4) == "████"
    assert bar(0.5, 4) == "██  "
    assert bar(5 / 32, 4) == "▋   "
    assert bar(0.0, 3) == "   "
    assert bar(7.0, 3) == "███"


def test_trend_keeps_the_whole_history_in_few_points():
    trend = Trend(capacity=8)
    for value in range(1000):
        trend.add(float(value))
    points = trend.points(80)
    assert len(points) <= 8
    assert points == sorted(points)
    assert points[0] < 150
    assert points[-1] > 850


def test_trend_averages_pairs_when_it_is_full():
    trend = Trend(capacity=4)
    for value in (1.0, 3.0, 5.0, 7.0):
        trend.add(value)
    assert trend.points(80) == [2.0, 6.0]
    trend.add(9.0)
    assert trend.points(80) == [2.0, 6.0, 9.0]  # the last point is not complete, but already shown
    trend.add(11.0)
    assert trend.points(80) == [2.0, 6.0, 10.0]


@pytest.mark.parametrize("width", [1, 3, 7])
def test_trend_fits_the_width(width):
    trend = Trend()
    for value in range(10):
        trend.add(float(value))
    assert len(trend.points(width)) == width
