"""Foresight of sliders: the next step is there before it is asked for, and never a wrong or an older picture."""

from __future__ import annotations

from typing import Any

import pytest
from studio_page import expected, redrawn, tiles

pytestmark = pytest.mark.browser

COUNT = """() => {
  if (window.asked) return;
  [window.asked, window.open] = [[], 0];
  const post = Worker.prototype.postMessage;
  Worker.prototype.postMessage = function (message, ...rest) {
    if (message.type === "call") {
      window.open++;
      this.addEventListener("message", ({ data }) => data.id === message.id && window.open--);
    }
    if (message.method === "view") window.asked.push(JSON.parse(message.params).state);
    if (window.slow) return void setTimeout(() => post.call(this, message, ...rest), window.slow);
    return post.call(this, message, ...rest);
  };
}"""


def asked(page: Any) -> list[dict[str, str]]:
    """The states asked of the worker since the last look."""
    states: list[dict[str, str]] = page.evaluate("() => window.asked.splice(0)")
    return states


@pytest.fixture
def counted(desk: Any) -> Any:
    """The desk, after a move that was not known: the page has seen how long a picture takes."""
    desk.evaluate(COUNT)
    desk.focus("#r-conversations")
    redrawn(desk, lambda: desk.keyboard.press("PageUp"))
    redrawn(desk, lambda: desk.click("[data-preset=prefix]"))
    desk.wait_for_timeout(500)
    asked(desk)
    return desk


def test_a_step_to_either_side_is_known_before_it_is_taken(counted: Any) -> None:
    counted.focus("#r-prefix")
    counted.wait_for_timeout(1000)
    assert {state["prefix"] for state in asked(counted)} == {"496", "528"}
    redrawn(counted, lambda: counted.keyboard.press("ArrowRight"))
    assert {"prefix": "528"} not in asked(counted)
    assert tiles(counted) == expected({"prefix": "528"}) != expected({})
    counted.wait_for_timeout(500)
    asked(counted)
    redrawn(counted, lambda: counted.keyboard.press("ArrowLeft"))
    assert asked(counted) == [] and tiles(counted) == expected({})


def test_slow_pictures_are_not_guessed(counted: Any) -> None:
    """Slow by the message that waits 300 ms on its way, whatever the machine."""
    counted.focus("#r-prefix")
    counted.wait_for_timeout(1000)
    asked(counted)
    counted.evaluate("() => { window.slow = 300; }")
    redrawn(counted, lambda: counted.keyboard.press("PageUp"))
    counted.evaluate("() => { window.slow = 0; }")
    assert len(asked(counted)) == 1
    counted.wait_for_timeout(500)
    assert asked(counted) == []


def test_a_picture_that_was_known_is_not_overwritten_by_an_older_one(counted: Any) -> None:
    """Many moves at once, the last of them to a known picture: it stays when the others' answers come in."""
    counted.focus("#r-prefix")
    counted.wait_for_timeout(1000)
    counted.evaluate("""() => {
      const slider = document.querySelector("#r-prefix");
      for (const value of [1024, 640, 528]) {
        slider.value = value;
        slider.dispatchEvent(new Event("input", { bubbles: true }));
      }
    }""")
    counted.wait_for_function("() => !window.open")
    counted.wait_for_timeout(500)
    assert tiles(counted) == expected({"prefix": "528"})


def test_a_problem_leaves_the_known_pictures(counted: Any) -> None:
    counted.focus("#r-pool")
    counted.wait_for_timeout(500)
    counted.fill("#c-pool", "banana")
    counted.press("#c-pool", "Tab")
    counted.wait_for_function("() => document.querySelector('#p-pool').textContent.includes('banana')")
    assert tiles(counted) == expected({})
    redrawn(counted, lambda: [counted.fill("#c-pool", "504"), counted.press("#c-pool", "Tab")])
    assert tiles(counted) == expected({}) and counted.inner_text("#p-pool") == ""
