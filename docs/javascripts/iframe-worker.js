// Search in a site that is opened from a folder: browsers start no Worker from a file: URL, so its script runs in a
// hidden frame. The offline plugin would fetch a script for this from another server.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inner = frame.contentWindow;
      this.inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.inner.importScripts = (...urls) => Promise.all(urls.map((each) => this.load(each)));
      this.loaded = this.load(url);
    }

    load(url) {
      const script = this.inner.document.createElement("script");
      script.src = url;
      const loaded = new Promise((resolve) => script.addEventListener("load", resolve));
      this.inner.document.body.append(script);
      return loaded;
    }

    async postMessage(data) {
      await this.loaded;
      this.inner.dispatchEvent(new this.inner.MessageEvent("message", { data }));
    }
  };
}
