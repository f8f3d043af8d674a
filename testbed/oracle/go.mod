module foresail/testbed/oracle

go 1.26.0

require (
	github.com/netresearch/go-cron v0.15.0
	github.com/robfig/cron/v3 v3.0.1
)
