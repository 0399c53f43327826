// The page's end of the worker: calls with replies, news of the boot, and "latest wins" for sliders: of the calls that
// came while one was in flight only the newest of each slot is sent.

const STOPPED = Object.assign(new Error("Python was stopped"), { name: "Stopped" });

export class Link {
  /** `on`: {stage, ready, failed} take the worker's news; slow(true) says that a call takes more than a second. */
  constructor(config, on) {
    Object.assign(this, { on, config: { ...config, base: location.href.split("#")[0] }, calls: new Map(), id: 0, newest: {} });
    this.queue = Promise.resolve();
  }

  start() {
    if (this.worker || this.broken) return;
    const fix = "Use a current browser (Chrome 80, Safari 16.4, Firefox 114), or try again.";
    const failed = (message, name = "WorkerError") => this.fail({ stage: "starting the worker", name, message, fix });
    try {
      this.worker = new Worker(new URL(this.config.worker, this.config.base), { type: "module" });
    } catch (error) {
      return failed(error.message, error.name);
    }
    this.worker.onerror = (event) => {
      event.preventDefault();
      failed(event.message || "it was refused or could not be loaded");
    };
    this.worker.onmessage = ({ data }) => this.take(data);
    this.worker.postMessage({ type: "boot", config: this.config });
  }

  take(data) {
    if (data.type === "failed") return this.fail(data);
    if (data.type === "ready") this.live = true;
    if (data.type !== "reply") return this.on[data.type](data);
    const call = this.calls.get(data.id);
    const header = JSON.parse(data.header);
    this.drop(data.id);
    if (header.error) call.reject(Object.assign(new Error(header.error.message), header.error));
    else call.resolve({ header, buffers: data.buffers });
  }

  drop(id) {
    clearTimeout(this.calls.get(id).timer);
    this.calls.delete(id);
    if (!this.calls.size) this.on.slow(false);
  }

  fail(news) {
    this.broken = true;
    this.end();
    this.on.failed(news);
  }

  /** Terminate the worker: the only way to interrupt Python. */
  end() {
    this.worker?.terminate();
    this.worker = this.live = null;
    for (const [id, { reject }] of [...this.calls]) {
      this.drop(id);
      reject(STOPPED);
    }
  }

  again() {
    this.broken = false;
    this.start();
  }

  /** {header, buffers}, or an Error whose `problems` are sentences by control. Waits for the boot if need be. */
  call(method, params, file = null) {
    this.start();
    if (this.broken) return Promise.reject(STOPPED);
    return new Promise((resolve, reject) => {
      const id = ++this.id;
      this.calls.set(id, { resolve, reject, timer: setTimeout(() => this.live && this.on.slow(true), 1000) });
      this.worker.postMessage({ type: "call", id, method, params: JSON.stringify(params), file }, file ? [file] : []);
    });
  }

  /** Like call; null when a newer call for the slot took its place. */
  latest(slot, method, params) {
    const mine = (this.newest[slot] = {});
    const reply = this.queue.then(() => (mine === this.newest[slot] ? this.call(method, params) : null));
    this.queue = reply.catch(() => {});
    return reply;
  }
}
