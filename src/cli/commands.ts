import { APP_COMMANDS } from "./app.ts";
import { AUDIT_COMMANDS } from "./audit.ts";
import { BACKUP_COMMAND, RESTORE_COMMAND } from "./backup.ts";
import { CHECK_COMMAND } from "./check.ts";
import type { Command } from "./command.ts";
import { CRONJOB_COMMANDS } from "./cronjob.ts";
import { DELIVERY_COMMANDS } from "./delivery.ts";
import { DEV_COMMAND } from "./dev.ts";
import { EVENT_COMMANDS } from "./event.ts";
import { GRANT_COMMANDS } from "./grant.ts";
import { INIT_COMMAND } from "./init.ts";
import { ISSUER_COMMANDS } from "./issuer.ts";
import { KEY_COMMANDS } from "./key.ts";
import { PROBLEM_COMMANDS } from "./problem.ts";
import { RESOURCE_COMMANDS } from "./protected_resource.ts";
import { SERVE_COMMAND } from "./serve.ts";
import { SETUP_COMMAND } from "./setup.ts";
import { SUBSCRIPTION_COMMANDS } from "./subscription.ts";
import { TEST_COMMAND } from "./test.ts";
import { TOKEN_COMMAND } from "./token.ts";
import { USER_COMMANDS } from "./user.ts";

/** All commands, in the order of the help. */
export const COMMANDS: readonly Command[] = [
  INIT_COMMAND,
  DEV_COMMAND,
  TEST_COMMAND,
  SERVE_COMMAND,
  SETUP_COMMAND,
  TOKEN_COMMAND,
  ...USER_COMMANDS,
  ...APP_COMMANDS,
  ...ISSUER_COMMANDS,
  ...GRANT_COMMANDS,
  ...RESOURCE_COMMANDS,
  ...EVENT_COMMANDS,
  ...SUBSCRIPTION_COMMANDS,
  ...DELIVERY_COMMANDS,
  ...CRONJOB_COMMANDS,
  ...KEY_COMMANDS,
  ...AUDIT_COMMANDS,
  ...PROBLEM_COMMANDS,
  BACKUP_COMMAND,
  RESTORE_COMMAND,
  CHECK_COMMAND,
];
