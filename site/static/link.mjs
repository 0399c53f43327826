// The page's end of the worker: calls with replies, stages of the boot, and "latest wins" for sliders:
// one call in flight, and of those that came meanwhile only the newest is sent.

const FIX = "Use a current browser (module workers came with Chrome 80, Safari 15, Firefox 114), or try again.";

export class Link {
  /** `on`: {stage, ready, failed, slow} take the worker's news; `slow(true)` when a call takes more than a second. */
  constructor(config, on) {
    this.config = { ...config, base: location.href.split("#")[0] };
    this.on = on;
    this.waiting = new Map();
    this.id = 0;
  }

  start() {
    if (this.worker || this.broken) return;
    try {
      this.worker = new Worker(new URL(this.config.worker, this.config.base), { type: "module" });
    } catch (error) {
      return this.fail({ stage: "worker", name: error.name, message: error.message, fix: FIX });
    }
    this.worker.onerror = (event) => {
      event.preventDefault();
      this.fail({ stage: "worker", name: "WorkerError", message: event.message || "the worker was refused or could not be loaded", fix: FIX });
    };
    this.worker.onmessage = ({ data }) => this.take(data);
    this.worker.postMessage({ type: "boot", config: this.config });
  }

  take(data) {
    if (data.type === "failed") return this.fail(data);
    if (data.type === "stage") return this.on.stage(data);
    if (data.type === "ready") {
      this.live = true;
      return this.on.ready(data);
    }
    const call = this.waiting.get(data.id);
    this.waiting.delete(data.id);
    clearTimeout(call?.timer);
    if (!this.waiting.size) this.on.slow(false);
    const header = JSON.parse(data.header);
    if (header.error) call?.reject(Object.assign(new Error(header.error.message), header.error));
    else call?.resolve({ header, buffers: data.buffers });
  }

  fail(news) {
    this.end(news.message);
    this.broken = Object.assign(new Error(news.message), { name: news.name });
    this.on.failed(news);
  }

  /** Terminate the worker, which is the only way to interrupt Python; `start` makes another. */
  end(message) {
    this.worker?.terminate();
    this.worker = null;
    this.live = false;
    this.next = this.busy = null;
    this.on.slow(false);
    for (const call of this.waiting.values()) {
      clearTimeout(call.timer);
      call.reject(Object.assign(new Error(message), { name: "Stopped" }));
    }
    this.waiting.clear();
  }

  retry() {
    this.broken = null;
    this.start();
  }

  /** {header, buffers}, or an Error whose `problems` are sentences by control. */
  call(method, params, file = null) {
    this.start();
    if (this.broken) return Promise.reject(this.broken);
    return new Promise((resolve, reject) => {
      const id = ++this.id;
      const timer = setTimeout(() => this.live && this.on.slow(true), 1000);
      this.waiting.set(id, { resolve, reject, timer });
      this.worker?.postMessage({ type: "call", id, method, params: JSON.stringify(params), file }, file ? [file] : []);
    });
  }

  /** Like call, for one `slot`; null when a newer call for the slot took its place. */
  latest(slot, method, params) {
    return new Promise((resolve, reject) => {
      this.next ??= new Map();
      this.next.get(slot)?.resolve(null);
      this.next.set(slot, { method, params, resolve, reject });
      this.pump();
    });
  }

  pump() {
    if (this.busy || !this.next?.size) return;
    const [[slot, job]] = this.next;
    this.next.delete(slot);
    const mine = (this.busy = this.call(job.method, job.params).then(job.resolve, job.reject));
    mine.finally(() => {
      if (this.busy !== mine) return;
      this.busy = null;
      this.pump();
    });
  }
}
