package access

import "slices"

// Action is something that may be done to a resource, by the server's name for
// it (https://www.mongodb.com/docs/manual/reference/privilege-actions/).
type Action string

// The actions that commands of the sandbox ask for.
const (
	ChangePassword         Action = "changePassword"
	ChangeCustomData       Action = "changeCustomData"
	ChangeStream           Action = "changeStream"
	CollMod                Action = "collMod"
	CollStats              Action = "collStats"
	CreateCollection       Action = "createCollection"
	CreateIndex            Action = "createIndex"
	CreateRole             Action = "createRole"
	CreateUser             Action = "createUser"
	DBStats                Action = "dbStats"
	DropCollection         Action = "dropCollection"
	DropDatabase           Action = "dropDatabase"
	DropIndex              Action = "dropIndex"
	DropRole               Action = "dropRole"
	DropUser               Action = "dropUser"
	Find                   Action = "find"
	GetCmdLineOpts         Action = "getCmdLineOpts"
	GetLog                 Action = "getLog"
	GetParameter           Action = "getParameter"
	GrantRole              Action = "grantRole"
	HostInfo               Action = "hostInfo"
	Insert                 Action = "insert"
	KillAnyCursor          Action = "killAnyCursor"
	KillAnySession         Action = "killAnySession"
	KillOp                 Action = "killop"
	ListCollections        Action = "listCollections"
	ListDatabases          Action = "listDatabases"
	ListIndexes            Action = "listIndexes"
	ListSessions           Action = "listSessions"
	Remove                 Action = "remove"
	RenameCollectionSameDB Action = "renameCollectionSameDB"
	ReplSetConfigure       Action = "replSetConfigure"
	ReplSetGetConfig       Action = "replSetGetConfig"
	ReplSetGetStatus       Action = "replSetGetStatus"
	ReplSetStateChange     Action = "replSetStateChange"
	RevokeRole             Action = "revokeRole"
	ServerStatus           Action = "serverStatus"
	SetParameter           Action = "setParameter"
	Update                 Action = "update"
	ViewRole               Action = "viewRole"
	ViewUser               Action = "viewUser"
	bypassValidation       Action = "bypassDocumentValidation"
)

// known are all actions that a role may name, those included that no command of
// the sandbox asks for: a role is to be the same here and there.
var known = []Action{
	ChangePassword, ChangeCustomData, ChangeStream, CollMod, CollStats, CreateCollection, CreateIndex, CreateRole, CreateUser,
	DBStats, DropCollection, DropDatabase, DropIndex, DropRole, DropUser, Find, GetCmdLineOpts, GetLog, GetParameter, GrantRole,
	HostInfo, Insert, KillAnyCursor, KillAnySession, KillOp, ListCollections, ListDatabases, ListIndexes, ListSessions, Remove,
	RenameCollectionSameDB, ReplSetConfigure, ReplSetGetConfig, ReplSetGetStatus, ReplSetStateChange, RevokeRole, ServerStatus,
	SetParameter, Update, ViewRole, ViewUser, bypassValidation,
	"anyAction", "appendOplogNote", "authSchemaUpgrade", "changeOwnCustomData", "changeOwnPassword", "checkFreeMonitoringStatus",
	"compact", "connPoolStats", "convertToCapped", "cpuProfiler", "dbHash", "dropConnections", "enableProfiler",
	"enableSharding", "flushRouterConfig", "forceUUID", "fsync", "getDatabaseVersion", "getDefaultRWConcern", "getShardMap",
	"getShardVersion", "impersonate", "indexStats", "inprog", "internal", "invalidateUserCache", "killCursors",
	"listShards", "logRotate", "moveChunk", "netstat", "planCacheIndexFilter", "planCacheRead", "planCacheWrite", "reIndex", "refineCollectionShardKey",
	"removeShard", "replSetHeartbeat", "replSetResizeOplog", "resync", "setAuthenticationRestriction", "setDefaultRWConcern",
	"setFeatureCompatibilityVersion", "setFreeMonitoring", "shardingState", "shutdown", "splitChunk", "splitVector",
	"storageDetails", "top", "touch", "trafficRecord", "unlock", "useUUID", "validate",
}

// IsAction reports that the server knows an action.
func IsAction(a Action) bool { return slices.Contains(known, a) }

// anyAction in a grant is every action.
const anyAction Action = "anyAction"
