import type { Infer } from "../../base/shape.ts";
import type { ManagedDelivery } from "../../event/delivery_record.ts";
import { el } from "../element.ts";
import type { Page } from "../pages.ts";
import { filters, head, since, state, when } from "../parts.ts";
import { href } from "../router.ts";
import { listTable } from "../table.ts";

type Delivery = Infer<typeof ManagedDelivery>;

export const page: Page = {
  title: "Deliveries",
  async show({ query }) {
    const names = ["endpoint", "name", "answer", "since"];
    const { node } = await listTable<Delivery>({
      path: "/backend/delivery",
      query: { ...Object.fromEntries(query), since: since(query.get("since")) },
      columns: [
        { name: "Event", cell: ({ id, name }) => el("a", { class: "main", href: href("deliveries", id) }, name) },
        { name: "State", cell: ({ status }) => state(status) },
        { name: "Made", class: "hide-s", cell: ({ created_at }) => when(created_at) },
      ],
      empty: "No delivery yet.",
    });
    return [head("Deliveries", "One event for one subscription."), filters(names), el("section", { class: "card" }, node)];
  },
};
