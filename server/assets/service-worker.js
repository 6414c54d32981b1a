// Shows a page of its own while Steward cannot be reached. It keeps nothing of a vault: no page is stored.
"use strict";
const OFFLINE = "/assets/offline.html";
self.addEventListener("install", (event) => {
  event.waitUntil(caches.open("offline").then((cache) => cache.add(new Request(OFFLINE, { cache: "reload" }))));
  self.skipWaiting();
});
self.addEventListener("fetch", (event) => {
  if (event.request.mode !== "navigate") return;
  event.respondWith(fetch(event.request).catch(async () => (await caches.match(OFFLINE)) || Response.error()));
});
