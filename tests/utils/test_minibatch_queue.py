import threading
import time

import pytest

from rllib_impass.utils.minibatch_queue import MinibatchQueue, QueueClosed


def test_four_producers_lose_nothing_and_keep_their_order():
    queue = MinibatchQueue(maxsize=3)
    num_items = 500
    depths = []

    def produce(producer):
        for i in range(num_items):
            queue.put((producer, i))

    threads = [threading.Thread(target=produce, args=(p,)) for p in range(4)]
    for thread in threads:
        thread.start()
    got = []
    for _ in range(4 * num_items):
        depths.append(len(queue))
        got.append(queue.get())
    for thread in threads:
        thread.join()

    assert max(depths) <= 3
    stats = queue.stats()
    assert (stats.num_put, stats.num_got, stats.depth) == (2000, 2000, 0)
    assert stats.peak_depth == 3
    for producer in range(4):
        assert [i for p, i in got if p == producer] == list(range(num_items))


def test_put_waits_while_full():
    queue = MinibatchQueue(maxsize=1)
    queue.put("a")
    thread = threading.Thread(target=queue.put, args=("b",))
    thread.start()
    time.sleep(0.1)
    assert thread.is_alive()
    assert queue.get() == "a"
    thread.join(timeout=5)
    assert not thread.is_alive()
    assert queue.get() == "b"
    assert queue.stats().put_wait_s >= 0.05


def test_get_waits_while_empty():
    queue = MinibatchQueue(maxsize=1)
    threading.Timer(0.1, queue.put, args=("late",)).start()
    assert queue.get() == "late"
    assert queue.stats().get_wait_s >= 0.05


@pytest.mark.parametrize("fill", [0, 1])
def test_closing_wakes_whoever_waits(fill):
    queue = MinibatchQueue(maxsize=1)
    for _ in range(fill):
        queue.put("x")
    call = (lambda: queue.put("y")) if fill else queue.get
    errors = []

    def wait():
        try:
            call()
        except QueueClosed as error:
            errors.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(0.05)
    queue.close()
    thread.join(timeout=5)
    assert len(errors) == 1
    with pytest.raises(QueueClosed):
        queue.put("z")
    with pytest.raises(QueueClosed):
        queue.get()


def test_a_queue_without_room_is_refused():
    with pytest.raises(ValueError, match="maxsize"):
        MinibatchQueue(maxsize=0)
