# Workload C in ns-2, as far as ns-2 goes: it has no Multipath TCP, so two independent NewReno connections
# take the two paths of scenarios/bench/c.toml ("uncoupled" without a common data level).
#
# usage: ns twopath.tcl FIRST_START_S [SEED_JITTER_S SEED]
#
# The connections start FIRST_START_S, or up to SEED_JITTER_S later, drawn with SEED. Prints one line of figures.
if {$argc != 1 && $argc != 3} {puts stderr "usage: ns twopath.tcl FIRST_START_S \[SEED_JITTER_S SEED\]"; exit 2}
lassign $argv start_s jitter_s seed

remove-all-packet-headers
add-packet-header IP TCP Flags
set ns [new Simulator]
$ns use-scheduler Splay
if {$argc == 3} {$defaultRNG seed $seed}

Agent/TCP set window_ 100
Agent/TCP set windowInit_ 2
Agent/TCP set packetSize_ 1000
Agent/TCP set minrto_ 0.2
set stop_s 50
set unlimited 100000

proc wire {a b rate_mbps delay_ms} {
  global ns unlimited
  $ns duplex-link $a $b ${rate_mbps}Mb ${delay_ms}ms DropTail
  $ns queue-limit $a $b $unlimited
  $ns queue-limit $b $a $unlimited
}

foreach path {0 1} rate_mbps {3 1} {
  foreach name {S A B D CS CD} {set $name [$ns node]}
  wire $S $A 10 10
  wire $B $D 10 10
  wire $CS $A 10 10
  wire $B $CD 10 10
  wire $A $B $rate_mbps 50
  $ns queue-limit $A $B 100
  set bottleneck($path) [$ns monitor-queue $A $B ""]

  set tcp($path) [new Agent/TCP/Newreno]
  set sink [new Agent/TCPSink]
  $ns attach-agent $S $tcp($path)
  $ns attach-agent $D $sink
  $ns connect $tcp($path) $sink
  set ftp [$tcp($path) attach-app FTP]
  set begin_s [expr {$argc == 3 ? $start_s + [uniform 0 $jitter_s] : $start_s}]
  $ns at $begin_s "$ftp start"

  set udp [new Agent/UDP]
  set null [new Agent/Null]
  $ns attach-agent $CS $udp
  $ns attach-agent $CD $null
  $ns connect $udp $null
  set cbr [new Application/Traffic/CBR]
  $cbr set packetSize_ 1000
  $cbr set rate_ 1Mb
  $udp set packetSize_ 1000
  $cbr attach-agent $udp
  foreach {from to} {5 15 35 45} {
    $ns at $from "$cbr start"
    $ns at $to "$cbr stop"
  }
}

proc finish {} {
  global tcp bottleneck start_s stop_s
  set line ""
  foreach path {0 1} {
    set goodput [expr {([$tcp($path) set ack_] + 1) * 8000.0 / ($stop_s - $start_s) / 1e6}]
    append line [format "path%d_mbps=%.4f path%d_drops=%d " $path $goodput $path [$bottleneck($path) set pdrops_]]
  }
  puts [string trim $line]
  exit 0
}
$ns at $stop_s finish
$ns run
