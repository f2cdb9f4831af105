"""The papers that the project reproduces: what each claims, what is run for it, and how a claim is judged.

A paper is one module here, with its :class:`~anabranch.papers.model.Paper`, and one file of claims. Its rules
say, before anything is run, which figures decide a claim and what would refute it. What of it is measured on
the kernel is a second module, with its :class:`~anabranch.papers.kernel.OnKernel`.
"""

from __future__ import annotations

from anabranch.papers import ee_mptcp_kernel, mfvl_kernel, mpcoa_kernel, mptcp_iot_kernel, stcp_kernel
from anabranch.papers.ee_mptcp import EE_MPTCP
from anabranch.papers.kernel import OnKernel
from anabranch.papers.mfvl import MFVL
from anabranch.papers.model import Paper
from anabranch.papers.mpcoa import MPCOA
from anabranch.papers.mptcp_iot import MPTCP_IOT
from anabranch.papers.stcp import STCP

#: Every paper, in the order of the claims' ids.
PAPERS: tuple[Paper, ...] = (MFVL, STCP, EE_MPTCP, MPTCP_IOT, MPCOA)

#: Those that are measured on the kernel, too.
ON_KERNEL: tuple[OnKernel, ...] = (
    mfvl_kernel.ON_KERNEL,
    stcp_kernel.ON_KERNEL,
    ee_mptcp_kernel.ON_KERNEL,
    mptcp_iot_kernel.ON_KERNEL,
    mpcoa_kernel.ON_KERNEL,
)
