import { tryCallback, tryRotation, tryVerification } from "./check_trials.ts";
import type { StageSetup } from "./stage.ts";
import {
  type Trial,
  tryCode,
  tryCredentials,
  tryDevice,
  tryDiscovery,
  tryIntrospection,
  tryIss,
  tryKeyedCredentials,
  tryNarrowing,
  tryPassword,
  tryRefresh,
  tryRequest,
  tryResourceMetadata,
  tryRevocation,
  tryUnregistered,
} from "./token_trials.ts";

/** A feature, and how it is tried. */
export interface Column {
  readonly heading: string;
  readonly setup: StageSetup;
  readonly parts: readonly { readonly name: string; readonly trial: Trial }[];
}

/** Features that are shown side by side. */
export interface Table {
  readonly title: string;
  readonly columns: readonly Column[];
}

const ROOT: StageSetup = { name: "root", signingAlg: "ES256", path: "" };
const RS256: StageSetup = { name: "rs256", signingAlg: "RS256", path: "" };
const EDDSA: StageSetup = { name: "eddsa", signingAlg: "EdDSA", path: "" };
const BELOW: StageSetup = { name: "below", signingAlg: "ES256", path: "/base" };

/** Every server that is started. */
export const SETUPS: readonly StageSetup[] = [ROOT, RS256, EDDSA, BELOW];

const getting: readonly Column[] = [
  column("discovery", tryDiscovery),
  column("credentials, Basic", tryCredentials("basic")),
  column("credentials, body", tryCredentials("body")),
  column("credentials, private_key_jwt", tryKeyedCredentials),
  column("code, Basic", tryCode("basic")),
  column("code, body", tryCode("body")),
  column("code, public", tryCode("none")),
  column("code, unregistered", tryUnregistered),
  column("iss", tryIss),
  column("device", tryDevice),
  column("password", tryPassword),
];

const using: readonly Column[] = [
  column("refresh", tryRefresh),
  column("narrow", tryNarrowing),
  column("revoke", tryRevocation),
  column("introspect", tryIntrospection),
  column("request", tryRequest),
  column("RFC 9728", tryResourceMetadata),
];

const checking: readonly Column[] = [
  column("ES256", tryVerification),
  column("RS256", tryVerification, RS256),
  column("EdDSA", tryVerification, EDDSA),
];

/** The trials. A column is a feature; one column has all trials of tokens at a base path. */
export const TABLES: readonly Table[] = [
  { title: "Getting tokens", columns: getting },
  {
    title: "Using and checking tokens",
    columns: [
      ...using,
      ...checking,
      {
        heading: "all below a path",
        setup: BELOW,
        parts: [...getting, ...using, column("verify", tryVerification)]
          .flatMap((one) => one.parts),
      },
    ],
  },
  {
    title: "Callbacks",
    columns: [column("signature", tryCallback), column("after a rotation", tryRotation)],
  },
];

function column(heading: string, trial: Trial, setup = ROOT): Column {
  return { heading, setup, parts: [{ name: heading, trial }] };
}
